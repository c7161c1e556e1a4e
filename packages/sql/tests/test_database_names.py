"""The public name of a database and its name on the server."""

from __future__ import annotations

import pytest

from intercode_sql.dialect.tokens import tokenize
from intercode_sql.server.database_names import DatabaseNames

NAMES = DatabaseNames("shop", "ic12_w1", "ic12")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("SELECT * FROM shop.sale", "SELECT * FROM `ic12_w1`.sale"),
        ("SELECT shop.id FROM shop", "SELECT shop.id FROM shop"),
        ("SELECT shop.sale.id FROM shop.sale", "SELECT `ic12_w1`.sale.id FROM `ic12_w1`.sale"),
        (
            "SELECT 'shop.x' FROM `Shop` . `sale` s, SHOP.shop",
            "SELECT 'shop.x' FROM `ic12_w1` . `sale` s, `ic12_w1`.shop",
        ),
        (
            "SELECT a.id, shop.id FROM a JOIN shop.b ON shop.id = b.id",
            "SELECT a.id, shop.id FROM a JOIN `ic12_w1`.b ON shop.id = b.id",
        ),
        ("DROP TABLE shop.a, shop.b", "DROP TABLE `ic12_w1`.a, `ic12_w1`.b"),
        ("SHOW TABLES FROM shop", "SHOW TABLES FROM `ic12_w1`"),
        ("SHOW COLUMNS FROM shop", "SHOW COLUMNS FROM shop"),
        ("SHOW COLUMNS FROM shop FROM shop", "SHOW COLUMNS FROM shop FROM `ic12_w1`"),
        ("SHOW CREATE DATABASE shop", "SHOW CREATE DATABASE `ic12_w1`"),
        ("CREATE DATABASE IF NOT EXISTS `shop`", "CREATE DATABASE IF NOT EXISTS `ic12_w1`"),
        ("SELECT 'shop'", "SELECT 'shop'"),
        (
            "SELECT 1 FROM information_schema.tables WHERE table_schema = 'Shop'",
            "SELECT 1 FROM information_schema.tables WHERE table_schema = 'ic12_w1'",
        ),
        (
            "INSERT INTO shop.shop SELECT shop.f(1)",
            "INSERT INTO `ic12_w1`.shop SELECT `ic12_w1`.f(1)",
        ),
        ("SELECT x FROM (SELECT shop.id FROM shop.shop) t", None),
    ],
)
def test_to_server(code: str, expected: str | None) -> None:
    if expected is None:
        expected = "SELECT x FROM (SELECT shop.id FROM `ic12_w1`.shop) t"
    assert NAMES.to_server(code, tuple(tokenize(code))) == expected


def test_to_agent() -> None:
    text = "Table 'ic12_w1.x' is denied to 'ic12_w1u'@'localhost'"
    assert NAMES.has_private_name(text)
    assert NAMES.to_agent(text) == "Table 'shop.x' is denied to 'agent'@'localhost'"
    assert not NAMES.has_private_name("Table 'shop.x'")


def test_equal_names_change_nothing() -> None:
    same = DatabaseNames("shop", "shop")
    code = "SELECT * FROM shop.sale"
    assert same.to_server(code, tuple(tokenize(code))) == code
    assert not same.has_private_name("shop")

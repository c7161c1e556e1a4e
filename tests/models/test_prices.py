"""Prices: the entry of a model, the cost of a request, and unknown costs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from intercode.core.errors import ConfigError
from intercode.models import Message, OpenAIModel, Price
from intercode.models.prices import PACKAGED_PRICES, find_in_table, find_price, read_prices
from intercode_sandbox.images.build.base_images import user_images
from support.faulty_endpoint import FaultyEndpoint, ok

ASK: list[Message] = [{"role": "user", "content": "hello"}]


def test_the_packages_own_table_names_a_source_and_a_date_for_each() -> None:
    table = read_prices(PACKAGED_PRICES)
    assert len(table) > 30
    for name, price in table.items():
        assert price.source.startswith("https://"), name
        assert price.date > "2026", name
        assert 0 < price.input <= price.output, name
        assert (price.cached or 0) < price.input, name
        if price.long is not None:
            assert price.long.input > price.input, name


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-3.5-turbo-0125", "gpt-3.5-turbo"),
        ("gpt-4o-mini-tts", None),
        ("gpt-4o-min", None),
        ("gpt-4", None),
    ],
)
def test_a_dated_name_is_the_model_and_a_longer_one_is_another(
    name: str, entry: str | None
) -> None:
    table = read_prices(PACKAGED_PRICES)
    price = find_in_table(table, f"openai/{name}")
    assert price == (table[f"openai/{entry}"] if entry else None)
    if price:
        assert find_price("openai", name) == price


def test_a_star_stands_for_the_rest_and_the_longest_stem_wins() -> None:
    cheap, dear = Price(1, 2), Price(3, 4)
    table = {"a/*": cheap, "a/big-*": dear, "a/big-one": Price(5, 6)}
    found = [find_in_table(table, n) for n in ("a/x", "a/big-x", "a/big-one-20260101", "b/x")]
    assert found == [cheap, dear, table["a/big-one"], None]


def test_a_users_file_goes_first_and_a_price_given_before_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, everyones = tmp_path / "mine.toml", tmp_path / "prices.toml"
    mine.write_text('["openai/gpt-4o"]\ninput = 1\noutput = 2\n')
    everyones.write_text('["openai/gpt-4o"]\ninput = 3\noutput = 4\n["own"]\ninput=5\noutput=6')
    monkeypatch.setenv("INTERCODE_CONFIG", str(tmp_path))
    assert find_price("openai", "gpt-4o", mine) == Price(1, 2)
    assert find_price("openai", "gpt-4o") == Price(3, 4)
    assert find_price("", "own") == Price(5, 6)
    assert find_price("", "gpt-4o") is None  # a user's own server is not OpenAI's
    assert find_price("openai", "gpt-4o", mine, {"input": 7, "output": 8}) == Price(7, 8)


@pytest.mark.parametrize("error", [PermissionError("no entry"), RuntimeError("no home")])
def test_without_a_home_that_can_be_read_the_packaged_prices_hold(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def home() -> NoReturn:
        raise error

    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", home)
    assert find_price("openai", "gpt-4o") == read_prices(PACKAGED_PRICES)["openai/gpt-4o"]
    assert user_images() == {}


def test_genai_prices_knows_models_that_the_table_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("genai_prices", reason="pip install 'intercode-gym[models]'")
    price = find_price("groq", "llama-3.3-70b-versatile")
    assert price is not None and 0 < price.input <= price.output
    assert price.source.startswith("https://")
    assert price.source.endswith(f" (genai-prices {library.__version__})")
    assert find_price("groq", "no-such-model") is None
    assert find_price("vllm", "llama-3.3-70b-versatile") is None  # a server of one's own
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert find_price("groq", "llama-3.3-70b-versatile") is None
    assert find_price("openai", "gpt-4o") is not None


def test_a_price_of_genai_prices_costs_what_it_says() -> None:
    pytest.importorskip("genai_prices", reason="pip install 'intercode-gym[models]'")
    from genai_prices import Usage, calc_price

    # prices with and without a higher price for long prompts, and one that changed at a date
    for provider, name in (
        ("groq", "llama-3.3-70b-versatile"),
        ("x-ai", "grok-4-fast"),
        ("openrouter", "openai/gpt-4o"),
        ("bedrock", "anthropic.claude-sonnet-4-20250514-v1:0"),
    ):
        price = find_price(provider, name)
        assert price is not None
        for prompt in (1000, 300_000):
            usage = Usage(input_tokens=prompt, cache_read_tokens=400, output_tokens=50)
            expected = calc_price(usage, name, provider_id=provider).total_price
            assert price.cost(prompt, 50, cached=400) == pytest.approx(float(expected)), name


def test_a_price_that_depends_on_the_time_of_day_is_unknown() -> None:
    pytest.importorskip("genai_prices", reason="pip install 'intercode-gym[models]'")
    assert find_price("deepseek", "deepseek-chat") is None


@pytest.mark.parametrize(
    "text",
    [
        "x = [1",
        "x = 3",
        "[m]\ninput = 1",
        '[m]\ninput = "1"\noutput = 2',
        "[m]\ninput = -1\noutput = 2",
        "[m]\ninput = nan\noutput = 1",
        "[m]\ninput = 1\noutput = 1\nrate = 2",
    ],
)
def test_a_table_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"prices\.toml"):
        find_price("a", "m", file)


def test_what_a_request_costs() -> None:
    long = Price(input=2, output=20, cached=0.2)
    price = Price(input=1, output=10, cached=0.1, written=1.25, long_from=1000, long=long)
    assert price.cost(1000, 10, cached=400, written=100) * 1e6 == pytest.approx(
        500 + 40 + 125 + 100
    )
    assert price.cost(1001, 10, cached=1) * 1e6 == pytest.approx(2000 + 0.2 + 200)
    assert Price(1, 1).cost(10, 0, cached=10) == Price(1, 1).cost(10, 0)
    assert price.max_cost(100, 10) * 1e6 == pytest.approx(125 + 100)
    assert price.affordable_completion_tokens(price.max_cost(100, 37) + 1e-12, 100) == 37
    assert price.affordable_completion_tokens(0.0, 100) < 0
    assert Price(1, 0).affordable_completion_tokens(1.0, 100) > 10**6


def test_the_cost_of_an_unknown_model_is_unknown() -> None:
    with FaultyEndpoint(ok(), ok(), ok(usage=None)) as server:
        with OpenAIModel("m", server.base_url) as model:
            assert model.complete(ASK).usage.cost is None
            assert model.metadata()["price"] is None
        with OpenAIModel("m", server.base_url, price={"input": 1, "output": 2}) as model:
            assert model.complete(ASK).usage.cost == pytest.approx(11e-6)
            assert model.complete(ASK).usage.cost is None  # the endpoint reported no counts
            assert model.metadata()["price"] == {"input": 1, "output": 2}

"""SQLAlchemy's dialect of MySQL, and pandas, over the DB-API interface."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pandas
import pytest
import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

import intercode_sql
from intercode_sql.types import DatabaseSpec

METADATA = sa.MetaData()
CUSTOMER = sa.Table(
    "customer",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(40), nullable=False, unique=True),
    sa.Column("born", sa.Date),
)
ORDER = sa.Table(
    "order",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("customer_id", sa.ForeignKey("customer.id")),
    sa.Column("price", sa.Numeric(8, 2)),
    sa.Column("at", sa.DateTime, server_default=sa.func.now()),
    sa.Column("seal", sa.LargeBinary),
    sa.Column("paid", sa.Boolean),
    sa.Column("weight", sa.Float),
    sa.Column("facts", sa.JSON),
    sa.Column("size", sa.Enum("small", "large")),
    sa.Column("note", sa.Text),
)


class Base(DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(30))
    books: Mapped[list[Book]] = relationship(cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "book"
    id: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str] = mapped_column(sa.String(30))
    author_id: Mapped[int] = mapped_column(sa.ForeignKey("author.id"))


@pytest.fixture(params=["embedded", pytest.param("mysql", marks=pytest.mark.mysql)])
def engine(request: pytest.FixtureRequest, shop: DatabaseSpec) -> Iterator[sa.Engine]:
    """An engine of SQLAlchemy on an empty database of each engine with MySQL's dialect."""
    if request.param == "mysql":
        server = request.getfixturevalue("mysql")
        url = f"mysql+intercode:///{shop.path}"
        opened = sa.create_engine(url, connect_args={"engine": server, "database": "empty"})
    else:
        opened = sa.create_engine("mysql+intercode://?timeout=60")
    yield opened
    opened.dispose()


def test_tables_rows_and_joins(engine: sa.Engine) -> None:
    METADATA.create_all(engine)
    hostile = "o'x\\%s %(a)s"
    values = {
        "customer_id": 1,
        "price": Decimal("3.50"),
        "seal": b"\0\xff'",
        "paid": True,
        "weight": 1.5,
        "facts": {"a": [1, "x'\\"]},
        "size": "large",
        "note": "100%",
    }
    with engine.begin() as connection:
        connection.execute(
            CUSTOMER.insert(),
            [{"name": hostile, "born": dt.date(2000, 1, 2)}, {"name": "b", "born": None}],
        )
        assert connection.execute(ORDER.insert().values(values)).inserted_primary_key == (1,)
    with engine.connect() as connection:
        row = connection.execute(sa.select(CUSTOMER.c.name, ORDER).join(ORDER)).mappings().one()
        assert dict(row) == {**values, "name": hostile, "id": 1, "at": row["at"]}
        assert isinstance(row["at"], dt.datetime)
        total = sa.func.sum(ORDER.c.price)
        grouped = sa.select(CUSTOMER.c.name, total).select_from(CUSTOMER.outerjoin(ORDER))
        grouped = grouped.group_by(CUSTOMER.c.id).order_by(CUSTOMER.c.name.desc())
        assert connection.execute(grouped).all() == [(hostile, Decimal("3.50")), ("b", None)]
        assert connection.execute(sa.text("SELECT 10 % 3, :x"), {"x": "%"}).all() == [(1, "%")]
        with pytest.raises(sa.exc.IntegrityError, match="Duplicate entry"):
            connection.execute(CUSTOMER.insert().values(name="b"))
        connection.rollback()
        with pytest.raises(sa.exc.ProgrammingError, match="missing"):
            connection.execute(sa.text("SELECT * FROM missing"))


def test_reflection(engine: sa.Engine) -> None:
    METADATA.create_all(engine)
    found = sa.inspect(engine)
    assert sorted(found.get_table_names()) == ["customer", "order"]
    assert found.has_table("order")
    assert not found.has_table("missing")
    assert [key["referred_table"] for key in found.get_foreign_keys("order")] == ["customer"]
    assert found.get_pk_constraint("customer")["constrained_columns"] == ["id"]
    read = sa.Table("order", sa.MetaData(), autoload_with=engine)
    assert [column.name for column in read.columns] == [c.name for c in ORDER.columns]


def test_objects_make_a_round_trip(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Author(name="Ann", books=[Book(title="One"), Book(title="Two")]))
        session.add(Author(name="Bob"))
        session.commit()
    with Session(engine) as session:
        ann = session.scalars(sa.select(Author).where(Author.name == "Ann")).one()
        assert [book.title for book in ann.books] == ["One", "Two"]
        ann.name = "Anna"
        ann.books.pop()
        session.commit()
    with Session(engine) as session:
        session.delete(session.get_one(Author, 1))
        session.rollback()
        counts = sa.select(Author.name, sa.func.count(Book.id)).outerjoin(Book).group_by(Author.id)
        assert session.execute(counts.order_by(Author.id)).all() == [("Anna", 1), ("Bob", 0)]


def test_a_dump_is_opened_by_its_url(tmp_path: Path) -> None:
    (tmp_path / "pets.sql").write_text("CREATE TABLE pet (name text); INSERT INTO pet VALUES ('x')")
    engine = sa.create_engine(f"mysql+intercode:///{tmp_path}/pets.sql")
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT name FROM pet")) == "x"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("DELETE FROM pet"))
        connection.rollback()
        assert connection.scalar(sa.text("SELECT COUNT(*) FROM pet")) == 0
    engine.dispose()
    with pytest.raises(sa.exc.ArgumentError, match="FILE"):
        sa.create_engine("mysql+intercode://root@host/x").connect()


def test_pandas_reads_and_writes_frames(engine: sa.Engine) -> None:
    frame = pandas.DataFrame({"name": ["a'b", "c"], "count": [1, 2], "share": [0.5, None]})
    frame.to_sql("frame", engine, index=False)
    pandas.testing.assert_frame_equal(pandas.read_sql("SELECT * FROM frame", engine), frame)


@pytest.mark.filterwarnings("ignore:pandas only supports SQLAlchemy")
def test_pandas_reads_a_connection() -> None:
    with intercode_sql.connect() as connection:
        read = pandas.read_sql("SELECT %s AS a, 'x' AS b", connection, params=("y",))
    assert read.to_dict("list") == {"a": ["y"], "b": ["x"]}

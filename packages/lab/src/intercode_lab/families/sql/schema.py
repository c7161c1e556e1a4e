"""Generated databases: sites, members, items and events of one of several domains.

All have four tables. A member belongs to a site, and an event has a member and an item::

    site (name, city, opened)
    member (name, site, level, joined, email or NULL)
    item (name, kind, price)
    event (member, item, day, quantity, amount, note or NULL)

Domain, nouns, names of tables and columns, and rows are drawn. Names of rows are unique, so that
they can break ties.
"""

from __future__ import annotations

import datetime
import hashlib
from dataclasses import dataclass, field

from intercode.core.types import DatabaseSpec, TreeEntry
from intercode.datasets.starter.file_tree import EPOCH, cached_entries
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw

Value = str | int | float | None


@dataclass(frozen=True, slots=True)
class Domain:
    """The nouns of a domain, each as (singular, plural), and the values of its categories."""

    database: str
    site: tuple[str, str]
    member: tuple[str, str]
    item: tuple[str, str]
    event: tuple[str, str]
    quantity: str
    amount: str
    levels: tuple[str, ...]
    kinds: tuple[str, ...]


DOMAINS = (
    Domain(
        "library",
        ("branch", "branches"),
        ("reader", "readers"),
        ("book", "books"),
        ("loan", "loans"),
        "days",
        "fee",
        ("child", "adult", "senior", "staff"),
        ("novel", "poetry", "history", "travel", "science"),
    ),
    Domain(
        "shop",
        ("store", "stores"),
        ("customer", "customers"),
        ("product", "products"),
        ("sale", "sales"),
        "pieces",
        "total",
        ("basic", "silver", "gold", "trade"),
        ("tool", "toy", "garden", "kitchen", "office"),
    ),
    Domain(
        "clinic",
        ("ward", "wards"),
        ("patient", "patients"),
        ("therapy", "therapies"),
        ("visit", "visits"),
        "minutes",
        "cost",
        ("private", "public", "guest", "research"),
        ("dental", "hearing", "speech", "massage", "heat"),
    ),
    Domain(
        "gym",
        ("club", "clubs"),
        ("athlete", "athletes"),
        ("course", "courses"),
        ("booking", "bookings"),
        "hours",
        "charge",
        ("trial", "student", "regular", "elite"),
        ("swimming", "boxing", "dance", "rowing", "climbing"),
    ),
    Domain(
        "fleet",
        ("depot", "depots"),
        ("driver", "drivers"),
        ("vehicle", "vehicles"),
        ("trip", "trips"),
        "distance",
        "expense",
        ("trainee", "local", "night", "lead"),
        ("van", "truck", "bus", "tram", "trailer"),
    ),
    Domain(
        "academy",
        ("campus", "campuses"),
        ("student", "students"),
        ("workshop", "workshops"),
        ("enrolment", "enrolments"),
        "lessons",
        "tuition",
        ("junior", "bachelor", "master", "visitor"),
        ("drawing", "music", "film", "pottery", "design"),
    ),
    Domain(
        "museum",
        ("gallery", "galleries"),
        ("guide", "guides"),
        ("exhibit", "exhibits"),
        ("tour", "tours"),
        "guests",
        "takings",
        ("volunteer", "assistant", "expert", "curator"),
        ("painting", "sculpture", "coin", "fossil", "map"),
    ),
    Domain(
        "estate",
        ("farm", "farms"),
        ("worker", "workers"),
        ("crop", "crops"),
        ("harvest", "harvests"),
        "crates",
        "revenue",
        ("seasonal", "permanent", "foreman", "apprentice"),
        ("fruit", "root", "leaf", "grain", "herb"),
    ),
)
CITIES = (
    "Arlen",
    "Brisk",
    "Calder",
    "Dorne",
    "Elva",
    "Fenwick",
    "Galt",
    "Hollin",
    "Isker",
    "Jarrow",
    "Kelso",
    "Lunden",
    "Marsk",
    "Norby",
    "Orrin",
    "Peel",
    "Quern",
    "Rosk",
    "Selby",
    "Torne",
)
FIRST_NAMES = (
    "Ada",
    "Bram",
    "Cleo",
    "Dario",
    "Edda",
    "Femi",
    "Gita",
    "Hugo",
    "Ines",
    "Joris",
    "Kaya",
    "Levi",
    "Mina",
    "Nils",
    "Olga",
    "Pia",
    "Quim",
    "Rosa",
    "Sami",
    "Tara",
    "Ulla",
    "Vito",
    "Wanda",
    "Yara",
)
LAST_NAMES = (
    "Abara",
    "Brandt",
    "Costa",
    "Dahl",
    "Esen",
    "Fabre",
    "Gruber",
    "Hansen",
    "Ivanov",
    "Jansen",
    "Kato",
    "Lopez",
    "Moreau",
    "Novak",
    "Okoye",
    "Petrov",
    "Quist",
    "Rossi",
    "Sato",
    "Tanaka",
    "Urban",
    "Varga",
    "Weber",
    "Zeman",
)
ITEM_WORDS = (
    "amber",
    "birch",
    "cedar",
    "cobalt",
    "coral",
    "crimson",
    "dawn",
    "ember",
    "fern",
    "granite",
    "harbor",
    "indigo",
    "jade",
    "linen",
    "lunar",
    "maple",
    "noble",
    "opal",
    "pearl",
    "quiet",
    "river",
    "silver",
    "solar",
    "timber",
    "velvet",
    "willow",
    "winter",
    "zephyr",
)
NOTES = ("urgent", "repeat", "by phone", "checked", "late", "partner")
_COLUMNS = {
    "id": ("id", "no", "nr", "num", "key_no", "ident"),
    "name": ("name", "full_name", "label", "title", "caption"),
    "city": ("city", "town", "location", "municipality"),
    "opened": ("opened", "open_since", "founded", "start_date"),
    "level": ("level", "grade", "tier", "status", "class_name"),
    "joined": ("joined", "registered", "entry_date", "since_date", "signed_up"),
    "email": ("email", "mail", "contact", "mail_address"),
    "kind": ("kind", "category", "genre", "sort", "section"),
    "price": ("price", "list_price", "rate", "base_price"),
    "day": ("day", "held_on", "event_date", "booked_on", "done_on"),
    "note": ("note", "remark", "comment", "info"),
}
_REFERENCES = ("{}_id", "{}_no", "{}_ref", "{}", "fk_{}", "id_{}")
_TABLES = ("{}", "the_{}", "t_{}", "{}_list", "tbl_{}", "{}_data", "all_{}", "{}_table", "my_{}")
FIRST_DAY = datetime.date(2021, 1, 1)
DAYS = 4 * 365


@dataclass(frozen=True, slots=True)
class Schema:
    """The names of a generated database.

    ``site``, ``member``, ``item``, ``event``: names of tables. ``id`` is the primary key of each.
    ``words``: the domain, for the text of queries. ``cities``: those in which sites are.
    """

    words: Domain
    cities: tuple[str, ...]
    site: str
    member: str
    item: str
    event: str
    id: str
    name: str
    city: str
    opened: str
    level: str
    joined: str
    email: str
    kind: str
    price: str
    day: str
    note: str
    site_id: str
    member_id: str
    item_id: str
    quantity: str
    amount: str

    @property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table."""
        return {
            self.site: (self.id, self.name, self.city, self.opened),
            self.member: (
                self.id,
                self.name,
                self.site_id,
                self.level,
                self.joined,
                self.email,
            ),
            self.item: (self.id, self.name, self.kind, self.price),
            self.event: (
                self.id,
                self.member_id,
                self.item_id,
                self.day,
                self.quantity,
                self.amount,
                self.note,
            ),
        }

    @property
    def description(self) -> str:
        """The tables and their columns, for a query."""
        return ", ".join(f"{t} ({', '.join(columns)})" for t, columns in self.tables.items())

    @property
    def all_joined(self) -> str:
        """The events ``e`` with their members ``p``, items ``i`` and the sites ``l`` of the
        members: one row for each event."""
        return (
            f"{self.event} AS e JOIN {self.member} AS p ON p.{self.id} = e.{self.member_id} "
            f"JOIN {self.item} AS i ON i.{self.id} = e.{self.item_id} "
            f"JOIN {self.site} AS l ON l.{self.id} = p.{self.site_id}"
        )


def draw_schema(draw: Draw, names: Choices | None = None) -> Schema:
    """Return the names of a database. Those of tables and columns come from ``names`` (None:
    from ``draw.query``), everything else from ``draw.query``."""
    words = draw.query.one(DOMAINS)
    cities = tuple(draw.query.some(CITIES, draw.by_difficulty(2, 3, 3, 4, 4)))
    names = names or draw.query
    table, reference = names.one(_TABLES), names.one(_REFERENCES)
    columns = {column: names.one(forms) for column, forms in _COLUMNS.items()}
    site, member, item, event = (
        table.format(noun) for noun, _ in (words.site, words.member, words.item, words.event)
    )
    return Schema(
        words,
        cities,
        site,
        member,
        item,
        event,
        **columns,
        site_id=reference.format(words.site[0]),
        member_id=reference.format(words.member[0]),
        item_id=reference.format(words.item[0]),
        quantity=names.one((words.quantity, f"n_{words.quantity}", f"{words.quantity}_count")),
        amount=names.one((words.amount, f"{words.amount}_eur", f"sum_{words.amount}")),
    )


@dataclass
class Data:
    """The rows of the four tables, in the order of their columns, and of further tables.

    ``further``: statements that come after those of the tables.
    """

    schema: Schema
    sites: list[list[Value]] = field(default_factory=list)
    members: list[list[Value]] = field(default_factory=list)
    items: list[list[Value]] = field(default_factory=list)
    events: list[list[Value]] = field(default_factory=list)
    further: list[str] = field(default_factory=list)

    def dump(self) -> str:
        """Return the statements that create the database, in MySQL's dialect."""
        s = self.schema
        tables = [
            create_table(
                s.site,
                self.sites,
                f"`{s.name}` varchar(40) NOT NULL",
                f"`{s.city}` varchar(40) NOT NULL",
                f"`{s.opened}` date NOT NULL",
                id_column=s.id,
            ),
            create_table(
                s.member,
                self.members,
                f"`{s.name}` varchar(40) NOT NULL",
                f"`{s.site_id}` int NOT NULL",
                f"`{s.level}` varchar(20) NOT NULL",
                f"`{s.joined}` date NOT NULL",
                f"`{s.email}` varchar(60) DEFAULT NULL",
                _reference(s.site_id, s.site, s.id),
                id_column=s.id,
            ),
            create_table(
                s.item,
                self.items,
                f"`{s.name}` varchar(40) NOT NULL",
                f"`{s.kind}` varchar(20) NOT NULL",
                f"`{s.price}` decimal(8,2) NOT NULL",
                id_column=s.id,
            ),
            create_table(
                s.event,
                self.events,
                f"`{s.member_id}` int NOT NULL",
                f"`{s.item_id}` int NOT NULL",
                f"`{s.day}` date NOT NULL",
                f"`{s.quantity}` int NOT NULL",
                f"`{s.amount}` decimal(10,2) NOT NULL",
                f"`{s.note}` varchar(20) DEFAULT NULL",
                _reference(s.member_id, s.member, s.id),
                _reference(s.item_id, s.item, s.id),
                id_column=s.id,
            ),
        ]
        name = s.words.database
        return "\n".join([f"CREATE DATABASE `{name}`;\nUSE `{name}`;", *tables, *self.further, ""])


def draw_data(draw: Draw, schema: Schema) -> Data:
    """Return rows for a schema, from ``draw.world``. Their number grows with the difficulty.

    Every city has a site, every site a member, and every kind two items. One member in six has no
    event, and some have many.
    """
    world, words = draw.world, schema.words
    data = Data(schema)
    site_names = world.some(ITEM_WORDS, draw.by_difficulty(3, 4, 5, 6, 8))
    for number, word in enumerate(site_names, 1):
        city = schema.cities[number - 1] if number <= len(schema.cities) else None
        data.sites.append(
            [
                number,
                f"{word.title()} {words.site[0].title()}",
                city or world.one(schema.cities),
                draw_day(world, -3000, 0),
            ]
        )
    members = draw.by_difficulty(10, 18, 30, 45, 60)
    full_names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    for number, full_name in enumerate(world.some(full_names, members), 1):
        address = f"{full_name.lower().replace(' ', '.')}@{world.one(('post', 'mail'))}.example"
        site = number if number <= len(site_names) else world.between(1, len(site_names))
        data.members.append(
            [
                number,
                full_name,
                site,
                world.one(words.levels),
                draw_day(world),
                address if world.chance(70) else None,
            ]
        )
    items = draw.by_difficulty(10, 14, 18, 24, 32)
    titles = [f"{a} {b}".capitalize() for a in ITEM_WORDS for b in ITEM_WORDS if a != b]
    prices = world.some(range(300, 9900, 5), items)
    for number, (title, cents) in enumerate(zip(world.some(titles, items), prices, strict=True), 1):
        twice = [*words.kinds, *words.kinds]
        kind = twice[number - 1] if number <= len(twice) else world.one(words.kinds)
        data.items.append([number, title, kind, cents / 100])
    busy = members - members // 6  # the others have no event
    for number in range(1, draw.by_difficulty(40, 70, 120, 200, 300) + 1):
        member = number if number <= busy else min(world.between(1, busy), world.between(1, busy))
        item, quantity = world.one(data.items), world.between(1, 20)
        discount = world.one((100, 100, 95, 90, 80))
        amount = round(float(item[3] or 0) * quantity * discount / 100, 2)
        data.events.append(
            [
                number,
                member,
                item[0],
                draw_day(world),
                quantity,
                amount,
                world.one(NOTES) if world.chance(40) else None,
            ]
        )
    return data


def draw_day(choices: Choices, first: int = 0, last: int = DAYS - 1) -> str:
    """Return a date, given as days after the beginning of 2021."""
    return (FIRST_DAY + datetime.timedelta(choices.between(first, last))).isoformat()


def create_table(name: str, rows: list[list[Value]], *columns: str, id_column: str = "id") -> str:
    """Return the statements that create a table with a numbered primary key, and fill it.

    ``columns``: the definitions of the other columns, and of foreign keys.
    """
    parts = [f"`{id_column}` int NOT NULL AUTO_INCREMENT", *columns, f"PRIMARY KEY (`{id_column}`)"]
    values = ",\n".join(f"({', '.join(map(literal, row))})" for row in rows)
    body, counter = ",\n  ".join(parts), len(rows) + 1
    insert = f"\nINSERT INTO `{name}` VALUES\n{values};" if rows else ""
    return f"CREATE TABLE `{name}` (\n  {body}\n) ENGINE=InnoDB AUTO_INCREMENT={counter};{insert}"


def literal(value: Value) -> str:
    """Return a value as SQL."""
    if value is None:
        return "NULL"
    return f"'{value}'" if isinstance(value, str) else f"{value:.2f}".removesuffix(".00")


def database_of(data: Data) -> DatabaseSpec:
    """Return the database with these rows. Its dump is written to the cache."""
    dump = data.dump().encode()
    file = f"{hashlib.sha256(dump).hexdigest()[:16]}.sql"
    folder = cached_entries("families/sql/database", [TreeEntry("file", file, 0o644, EPOCH, dump)])
    return DatabaseSpec("mysql-dump", folder / file, data.schema.words.database)


def _reference(column: str, table: str, key: str) -> str:
    return f"FOREIGN KEY (`{column}`) REFERENCES `{table}` (`{key}`)"

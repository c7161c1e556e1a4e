"""Families about tables: CSV, JSON lines and timetables."""

from __future__ import annotations

from collections.abc import Sequence

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import WORDS, bash_task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_CITIES = ("Arnheim", "Borek", "Calder", "Dunvik", "Eskil", "Fenwick", "Garlan", "Hollin")
_KINDS = ("order", "refund", "visit", "login", "alarm", "note")


def _csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])


@family("bash")
def best_group(draw: Draw) -> Task:
    """Print the group with the greatest total."""
    columns = draw.query.shuffled(("city", "article", "amount", "day"))[: 3 + draw.query.index(2)]
    columns += [name for name in ("city", "amount") if name not in columns]
    at = {name: number for number, name in enumerate(columns, 1)}
    cities = draw.world.some(_CITIES, min(3 + draw.difficulty, 8))
    rows, totals = [], dict.fromkeys(cities, 0)
    for _ in range(draw.by_difficulty(8, 20, 50, 100, 200)):
        city, amount = draw.world.one(cities), draw.world.between(5, 500)
        totals[city] += amount
        cells = {
            "city": city,
            "amount": amount,
            "article": draw.world.one(WORDS),
            "day": f"2024-03-{draw.world.between(10, 28)}",
        }
        rows.append([cells[name] for name in columns])
    first, second = sorted(totals.values())[-2:][::-1]
    if first == second:
        best = next(city for city in cities if totals[city] == first)
        cells = {"city": best, "amount": 1, "article": "pin", "day": "2024-03-01"}
        rows.append([cells[name] for name in columns])
    tree = FileTree()
    tree.file("sales.csv", _csv(columns, rows))
    total = f"n[${at['city']}] += ${at['amount']}"
    return bash_task(
        draw,
        (
            "Which city in sales.csv has the greatest sum of amounts? Print the city.",
            "Add up the column amount of sales.csv for each city, and print the name of the city "
            "with the largest total.",
            "sales.csv lists sales, each with a city and an amount. In which city do the amounts "
            "add up to the most? Print only the name of the city.",
        ),
        f"awk -F, 'NR > 1 {{ {total} }} END {{ for (c in n) if (n[c] > m) "
        "{ m = n[c]; b = c } print b }' sales.csv",
        tree,
        also=(
            f"tail -n +2 sales.csv | awk -F, '{{ {total} }} END {{ for (c in n) print n[c], c }}'"
            " | sort -rn | head -n 1 | cut -d' ' -f2",
        ),
    )


@family("bash", held_out=True)
def joined_total(draw: Draw) -> Task:
    """Add up the amounts of one table for the rows that another table selects."""
    city = draw.query.one(_CITIES)
    people = draw.world.some(range(100, 999), draw.by_difficulty(4, 8, 16, 30, 60))
    customers = [
        [
            n,
            draw.world.one(WORDS),
            city if i == 0 else draw.world.one(_CITIES[: 2 + draw.difficulty]),
        ]
        for i, n in enumerate(people)
    ]
    orders = [[9000, people[0], draw.world.between(100, 900)]]
    for number in range(draw.by_difficulty(6, 14, 30, 60, 120)):
        orders.append([9001 + number, draw.world.one(people), draw.world.between(5, 900)])
    tree = FileTree()
    tree.file("customers.csv", _csv(("number", "name", "city"), draw.world.shuffled(customers)))
    tree.file("orders.csv", _csv(("order", "customer", "amount"), draw.world.shuffled(orders)))
    return bash_task(
        draw,
        (
            f"Print the sum of the amounts in orders.csv of all customers from {city}. "
            "The column customer has the number of a customer in customers.csv.",
            f"What is the total amount of the orders in orders.csv that come from customers in "
            f"{city}? The cities are in customers.csv. Print the total.",
            "customers.csv says in which city each customer lives, and the column customer of "
            f"orders.csv has the customer's number. Add up the amounts of all orders from {city}, "
            "and print the sum.",
        ),
        f'awk -F, \'NR == FNR {{ if ($3 == "{city}") c[$1]; next }} $2 in c {{ n += $3 }} '
        "END { print n }' customers.csv orders.csv",
        tree,
        also=(
            f"LC_ALL=C join -t, -1 2 -2 1 <(LC_ALL=C sort -t, -k2,2 orders.csv) "
            f"<(grep ',{city}$' customers.csv | LC_ALL=C sort -t, -k1,1) "
            "| awk -F, '{ n += $3 } END { print n }'",
        ),
    )


@family("bash")
def json_records(draw: Draw) -> Task:
    """List the ids of the JSON records that fulfil two conditions."""
    kind, limit = draw.query.one(_KINDS), draw.query.between(200, 700)
    tree = FileTree()
    number = draw.by_difficulty(6, 15, 40, 80, 160)
    rows = []
    for index, name in enumerate(draw.world.some(range(1000, 9999), number)):
        own = kind if index == 0 or draw.world.chance(35) else draw.world.one(_KINDS)
        size = limit + 1 + draw.world.index(90) if index == 0 else draw.world.between(1, 999)
        rows.append(
            f'{{"id":{name},"kind":"{own}","size":{size},"by":"{draw.world.one(WORDS)}"}}\n'
        )
    parts = draw.difficulty
    for part in range(parts):
        tree.file(f"records/{part}.jsonl", "".join(rows[part::parts]))
    return bash_task(
        draw,
        (
            f"Each line in records/*.jsonl is a JSON object. Print the ids of those of the kind "
            f"{kind} with a size above {limit}, one per line.",
            f"Which records of the kind {kind} in records/*.jsonl have a size above {limit}? "
            "Print their ids, one per line.",
            "The files records/*.jsonl have one JSON object per line, with an id, a kind and a "
            f"size. Find all objects whose kind is {kind} and whose size is greater than {limit}, "
            "and print the id of each on a line.",
        ),
        f'grep -h \'"kind":"{kind}"\' records/*.jsonl '
        f"| awk -F'[:,]' '$6 > {limit} {{ print $2 }}'",
        tree,
        also=(
            f'cat records/*.jsonl | sed -n \'s/.*"id":\\([0-9]*\\),"kind":"{kind}",'
            '"size":\\([0-9]*\\),.*/\\1 \\2/p\' '
            f"| while read -r i s; do [ $s -gt {limit} ] && echo $i; done; true",
        ),
    )


@family("bash")
def timetable(draw: Draw) -> Task:
    """List the jobs of a timetable that run at one time."""
    hour, minute, day = (
        draw.query.between(0, 23),
        5 * draw.query.index(12),
        draw.query.between(1, 7),
    )
    rows = []
    jobs = draw.world.shuffled(WORDS)[: draw.by_difficulty(6, 10, 16, 24, 36)]
    for index, job in enumerate(jobs):
        hit = index == 0 or draw.world.chance(25)
        fields = (
            _field(draw, minute, 0, 59, hit or draw.world.chance(50)),
            _field(draw, hour, 0, 23, hit or draw.world.chance(50)),
            _field(draw, day, 1, 7, hit or draw.world.chance(50)),
        )
        rows.append(f"{' '.join(fields)} run-{job}\n")
    tree = FileTree()
    tree.file("timetable", "".join(draw.world.shuffled(rows)))
    match = (
        'function m(f, v,  p, n, i, r) { if (f == "*") return 1; n = split(f, p, ","); '
        'for (i = 1; i <= n; i++) { if (split(p[i], r, "-") == 2 ? v >= r[1] && v <= r[2] '
        ": v == p[i] + 0) return 1 } return 0 }"
    )
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    clock = f"{hour:02}:{minute:02}"
    return bash_task(
        draw,
        (
            "Each line of timetable has a minute, an hour, a weekday (1 is Monday) and a command. "
            "A field is *, a number, a range such as 2-4, or a list of these with commas. Which "
            f"commands run on {names[day - 1]} at {clock}? Print them, one per line.",
            "timetable has the fields minute, hour, weekday (1 is Monday, 7 is Sunday) and "
            "command, in the style of cron: *, 5, 5-9 or 1,4-6. Print the commands that start at "
            f"{clock} on a {names[day - 1]}, one per line.",
            f"What does the file timetable start on a {names[day - 1]} at {clock}? Its lines have "
            "the fields minute, hour, weekday (Monday is 1, Sunday 7) and command. The field * "
            "always fits; any other is a number, a range a-b with both ends, or several of these "
            "separated by commas. Print the commands, one per line.",
        ),
        f"awk '{match} m($1, {minute}) && m($2, {hour}) && m($3, {day}) {{ print $4 }}' timetable",
        tree,
    )


def _field(draw: Draw, value: int, low: int, high: int, hit: bool) -> str:
    """Return a field of a timetable that contains a value, or one that does not."""
    if not hit:
        other = low + (value - low + 1 + draw.world.index(high - low)) % (high - low + 1)
        return str(other)
    form = draw.world.index(1 + min(draw.difficulty, 3))
    if form == 0:
        return "*"
    if form == 1:
        return str(value)
    first = max(low, value - draw.world.index(4))
    area = f"{first}-{min(high, value + 1 + draw.world.index(4))}"
    return area if form == 2 else f"{low},{area}"

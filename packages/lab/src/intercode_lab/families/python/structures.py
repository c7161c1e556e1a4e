"""Families about lists, dictionaries and what can be built of them."""

from __future__ import annotations

from typing import Any

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.python.python_task import WORDS, function_name, python_task


@family("python")
def command_list(draw: Draw) -> Task:
    """Carry out commands on a list."""
    q, name = draw.query, function_name(draw)
    known = [
        ("adds the number at the end", "items.append(n)"),
        ("adds the number at the front", "items.insert(0, n)"),
        ("removes so many from the front (all, if there are fewer)", "del items[:n]"),
        (
            "removes so many from the end (all, if there are fewer)",
            "items[:] = items[: max(0, len(items) - n)]",
        ),
        ("adds the number to every item", "items[:] = [i + n for i in items]"),
        (
            "moves the first item to the end, so many times",
            "items[:] = items[n % len(items) :] + items[: n % len(items)] if items else []",
        ),
    ]
    chosen = [known[q.index(2)], *q.some(known[2:], min(draw.difficulty, 4))]
    words = q.some(WORDS, len(chosen))
    meaning = "; ".join(f"'{w}' {text}" for w, (text, _) in zip(words, chosen, strict=True))
    branches = "".join(
        f"        if word == '{w}':\n            {code}\n"
        for w, (_, code) in zip(words, chosen, strict=True)
    )
    w = draw.world
    inputs: list[list[Any]] = [[[]]]
    for _ in range(5):
        commands = [[words[0], w.between(1, 9)] for _ in range(3)]
        size = w.between(2, 3 * draw.difficulty)
        commands += [[w.one(words), w.between(1, 4)] for _ in range(size)]
        inputs.append([w.shuffled(commands)])
    return python_task(
        draw,
        name,
        (
            f"Write {name}(commands), which begins with an empty list of numbers, carries out all "
            f"commands, and returns the list. A command is a pair of a word and a number: "
            f"{meaning}.",
            f"Define {name}(commands). Each command is [word, number] and changes a list, which is "
            f"empty at first: {meaning}. Return the list after the last command.",
            "At first a list of numbers is empty, and then commands change it, one after the "
            "other. Each command is a pair of a word and a number, and the word says what "
            f"happens: {meaning}. Write {name}(commands), which returns the list as it is after "
            "all commands.",
        ),
        f"def {name}(commands):\n    items = []\n    for word, n in commands:\n{branches}"
        f"    return items\n",
        inputs,
    )


@family("python")
def walk_on_grid(draw: Draw) -> Task:
    """Follow moves on a grid."""
    q, name = draw.query, function_name(draw)
    letters = q.some("abcdefgh", 4)
    width, height = q.between(4, 12), q.between(4, 12)
    wraps = q.chance(50)
    start = [q.between(0, width - 1), q.between(0, height - 1)]
    border = (
        "leaving the grid on one side, one comes in on the other"
        if wraps
        else "a move that would leave the grid is not made"
    )
    move = (
        f"        x, y = (x + dx) % {width}, (y + dy) % {height}\n"
        if wraps
        else f"        if 0 <= x + dx < {width} and 0 <= y + dy < {height}:\n"
        f"            x, y = x + dx, y + dy\n"
    )
    steps = dict(zip(letters, ((1, 0), (-1, 0), (0, 1), (0, -1)), strict=True))
    text = f"{letters[0]} adds 1 to x, {letters[1]} subtracts 1 from x, {letters[2]} adds 1 to y, "
    text += f"{letters[3]} subtracts 1 from y"
    ask, result, note = "the position [x, y] at the end", "[x, y]", ""
    if draw.difficulty > 2:
        ask, result = "the number of different positions, with the first", "len(seen)"
    if draw.difficulty > 4:
        note = " A capital letter makes the same move twice."
    gold = (
        f"def {name}(moves):\n    x, y = {start[0]}, {start[1]}\n    seen = {{(x, y)}}\n"
        f"    steps = {steps!r}\n"
        f"    moves = ''.join(m.lower() * 2 if m.isupper() else m for m in moves)\n"
        f"    for m in moves:\n        dx, dy = steps[m]\n{move}        seen.add((x, y))\n"
        f"    return {result}\n"
    )
    signs = [*letters, *(letter.upper() for letter in letters)] if note else letters
    w = draw.world
    inputs = [
        ["".join(w.one(signs) for _ in range(w.between(3, 15 * draw.difficulty)))] for _ in range(5)
    ]
    return python_task(
        draw,
        name,
        (
            f"Positions on a grid have x from 0 to {width - 1} and y from 0 to {height - 1}. Write "
            f"{name}(moves): from {start}, follow a text of letters ({text}); {border}.{note} "
            f"Return {ask}.",
            f"Define {name}(moves), which returns {ask}, of a walk on a grid that is {width} wide "
            f"and {height} high. It begins at x, y = {start[0]}, {start[1]}. Of the letters of "
            f"`moves`, {text}; {border}.{note}",
            f"Somebody walks on a grid from x = 0 to {width - 1} and y = 0 to {height - 1}, and "
            f"starts at {start}. A text of letters says how: {text}; {border}.{note} Write "
            f"{name}(moves), which gets this text and returns {ask}.",
        ),
        gold,
        inputs,
    )


@family("python")
def flatten_nested(draw: Draw) -> Task:
    """Turn nested dictionaries into a flat one."""
    q, name = draw.query, function_name(draw)
    between = q.one((".", "/", "::", "-", "__", ">"))
    k = q.between(2, 99)
    what, code = q.one(
        (
            (f"multiplied by {k}", f"value * {k}"),
            (f"plus {k}", f"value + {k}"),
            ("as a text", "str(value)"),
        )
    )
    deep = draw.difficulty > 2
    note = " A list counts as a dictionary with the keys 0, 1, 2 and so on." if deep else ""
    gold = (
        f"def {name}(data):\n    flat = {{}}\n\n    def visit(value, path):\n"
        f"        if isinstance(value, list):\n            value = dict(enumerate(value))\n"
        f"        if isinstance(value, dict):\n            for key, inner in value.items():\n"
        f"                visit(inner, [*path, str(key)])\n        else:\n"
        f"            flat['{between}'.join(path)] = {code}\n\n    visit(data, [])\n"
        f"    return flat\n"
    )
    w = draw.world

    def nested(depth: int) -> Any:
        if depth == 0:
            return w.between(0, 99)
        if deep and w.chance(30):
            return [nested(w.between(0, depth - 1)) for _ in range(w.between(1, 3))]
        return {key: nested(w.between(0, depth - 1)) for key in w.some(WORDS, w.between(1, 3))}

    inputs = [
        [{"top": nested(draw.by_difficulty(1, 2, 3, 4, 5)), w.one(WORDS): 7}] for _ in range(5)
    ]
    return python_task(
        draw,
        name,
        (
            f"Write {name}(data), which flattens nested dictionaries: the result has a key for "
            f"each number in them, made of the keys that lead to it with '{between}' between them, "
            f"and as its value the number {what}.{note}",
            f"Define {name}(data). `data` is a dictionary of numbers and of further dictionaries "
            f"of this kind. Return one dictionary that maps each path, its keys joined by "
            f"'{between}', to the number there {what}.{note}",
            f"Nested dictionaries are hard to compare. Write {name}(data), which returns a "
            f"dictionary of one level only. Each number in `data` is in it, {what}, and its key "
            f"is made of all keys on the way to the number, joined with '{between}'.{note}",
        ),
        gold,
        [*inputs, [{}]],
    )


@family("python", held_out=True)
def join_intervals(draw: Draw) -> Task:
    """Join intervals that are close to each other."""
    q, name = draw.query, function_name(draw)
    gap = q.between(0, 9)
    shortest = q.between(1, 12) if draw.difficulty > 2 else 0
    note = f" At last, leave out those that are shorter than {shortest}." if shortest else ""
    result = f"[i for i in joined if i[1] - i[0] >= {shortest}]" if shortest else "joined"
    if draw.difficulty > 4:
        note += " Return only the sum of their lengths."
        result = f"sum(b - a for a, b in {result})"
    w = draw.world
    inputs: list[list[Any]] = [[[]]]
    for _ in range(6):
        starts = [w.between(0, 30 * draw.difficulty + 40) for _ in range(w.between(2, 8))]
        inputs.append([[[start, start + w.between(1, 15)] for start in starts]])
    return python_task(
        draw,
        name,
        (
            f"Write {name}(intervals) for a list of pairs [begin, end] in any order. Join those "
            f"that overlap, or between which there is a gap of at most {gap}, and return the "
            f"joined pairs sorted by their begin.{note}",
            f"Define {name}(intervals): pairs [begin, end], unsorted. Two of them belong together "
            f"if the later one begins at most {gap} after the end of what is before it. Return "
            f"the pairs [begin, end] of what belongs together, in rising order.{note}",
            "Given is an unsorted list of intervals [begin, end]. Merge two of them if they "
            f"overlap, touch, or lie at most {gap} apart, and go on until none can be merged. "
            f"Write {name}(intervals), which returns the pairs [begin, end] that are left, the "
            f"lowest first.{note}",
        ),
        f"def {name}(intervals):\n    joined = []\n    for begin, end in sorted(intervals):\n"
        f"        if joined and begin - joined[-1][1] <= {gap}:\n"
        f"            joined[-1][1] = max(joined[-1][1], end)\n        else:\n"
        f"            joined.append([begin, end])\n    return {result}\n",
        inputs,
    )


@family("python")
def group_records(draw: Draw) -> Task:
    """Group records, and sort the groups."""
    q, name = draw.query, function_name(draw)
    key, value, *kinds = q.some(WORDS, 6)
    what, code = q.one(
        (("sum", "sum(v)"), ("largest", "max(v)"), ("smallest", "min(v)"), ("number", "len(v)"))
    )
    reverse = q.chance(50)
    order = f"by {'falling' if reverse else 'rising'} {what}, equal ones by '{key}'"
    sign = "-" if reverse else ""
    least, note, condition = q.between(2, 9), "", ""
    if draw.difficulty > 2:
        note = f" Records whose '{value}' is below {least} do not count."
        condition = f"        if r['{value}'] < {least}:\n            continue\n"
    cut = ""
    if draw.difficulty > 3:
        count = q.between(1, 3)
        note += f" The list has only the first {f'{count} pairs' if count > 1 else 'pair'}."
        cut = f"[:{count}]"
    w = draw.world
    inputs: list[list[Any]] = [[[]]]
    for _ in range(5):
        size = w.between(2, 6 * draw.difficulty)
        inputs.append([[{key: w.one(kinds), value: w.between(0, 20)} for _ in range(size)]])
    return python_task(
        draw,
        name,
        (
            f"Write {name}(records) for a list of dictionaries with the keys '{key}' (a text) and "
            f"'{value}' (a number). Return a list of pairs [{key}, {what} of the '{value}'], one "
            f"for each different '{key}', sorted {order}.{note}",
            f"Define {name}(records). Each record is a dictionary with '{key}' and '{value}'. "
            f"Group them by '{key}' and return a list with [{key}, {what} of '{value}'] for every "
            f"group, sorted {order}.{note}",
            f"Records are dictionaries with a text '{key}' and a number '{value}'. For each "
            f"'{key}' that occurs I need the {what} of its '{value}'. Write {name}(records), "
            f"which returns this as a list of pairs [{key}, {what}], sorted {order}.{note}",
        ),
        f"def {name}(records):\n    groups = {{}}\n    for r in records:\n{condition}"
        f"        groups.setdefault(r['{key}'], []).append(r['{value}'])\n"
        f"    found = [[k, {code}] for k, v in groups.items()]\n"
        f"    found.sort(key=lambda g: ({sign}g[1], g[0]))\n    return found{cut}\n",
        inputs,
    )

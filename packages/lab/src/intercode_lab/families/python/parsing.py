"""Families about reading texts of a form that the query describes."""

from __future__ import annotations

from itertools import pairwise

from intercode.core.types import Task
from intercode_lab.families.choices import Choices
from intercode_lab.families.family import Draw, family
from intercode_lab.families.python.python_task import WORDS, function_name, python_task


@family("python")
def key_value_lines(draw: Draw) -> Task:
    """Read lines with names and numbers into a dictionary."""
    q, name = draw.query, function_name(draw)
    between, comment = q.one((":", "=", "->", "|", "~", ">>")), q.one("#;%!")
    what, combine, default = q.one(
        (("sum", "+ n", "0"), ("largest", "n", "n"), ("number of lines", "+ 1", "0"))
    )
    step = f"max(found.get(key, {default}), n)" if what == "largest" else ""
    step = step or f"found.get(key, {default}) {combine}"
    of_entries = "number of its entries" if what == "number of lines" else f"{what} of its numbers"
    upper = "" if draw.difficulty < 3 else ".lower()"
    skip = f"if not line or line[0] == '{comment}':"
    note = " Names that differ only in capitals are the same, and written small." if upper else ""
    rest = "    return found\n"
    if draw.difficulty > 3:
        least = q.between(2, 3) if what == "number of lines" else q.between(2, 30)
        rest = f"    return {{k: v for k, v in found.items() if v >= {least}}}\n"
        note += f" Names whose value is then below {least} are left out."
    gold = (
        f"def {name}(text):\n    found = {{}}\n    for line in text.splitlines():\n"
        f"        line = line.strip()\n        {skip}\n            continue\n"
        f"        key, _, value = line.partition('{between}')\n"
        f"        key, n = key.strip(){upper}, int(value)\n        found[key] = {step}\n{rest}"
    )
    w = draw.world
    inputs = []
    for _ in range(draw.difficulty + 3):
        names = w.some(WORDS, 4)
        lines = ["", f"{comment} {w.one(WORDS)}"]
        for _ in range(w.between(2, 4 * draw.difficulty)):
            key = w.one(names)
            space = w.one(("", " "))
            key = key.title() if w.chance(30) else key
            lines.append(f"{space}{key}{space}{between}{space}{w.between(1, 50)}")
        inputs.append(["\n".join(w.shuffled(lines))])
    return python_task(
        draw,
        name,
        (
            f"Write {name}(text). Lines of the text have the form NAME {between} NUMBER, with or "
            f"without blanks around its parts; empty ones and those that begin with {comment} do "
            f"not count. Return a dictionary with the {what} for each name.{note}",
            f"Define {name}(text): it reads lines such as `apple {between} 3` (blanks do not "
            f"matter; skip empty lines and those starting with {comment}) and returns, as a "
            f"dictionary, for each name the {what}.{note}",
            f"My texts have one entry per line: a name, then {between}, then a whole number, "
            "sometimes with blanks around them. Ignore lines that are empty or begin with "
            f"{comment}. Write {name}(text), which returns a dictionary that has under each name "
            f"the {of_entries}.{note}",
        ),
        gold,
        inputs,
    )


@family("python")
def invented_units(draw: Draw) -> Task:
    """Add up quantities in units that the query defines."""
    q, name = draw.query, function_name(draw)
    letters = q.some("bcdfghjklmpqrtvwz", draw.difficulty + 1)
    sizes = [1]
    for _ in letters[1:]:
        sizes.append(sizes[-1] * q.between(3, 24))
    units = dict(zip(letters, sizes, strict=True))
    text = ", ".join(
        f"1{big} = {units[big] // units[small]}{small}" for small, big in pairwise(letters)
    )

    def quantity(c: Choices) -> str:
        return "".join(f"{c.between(1, 99)}{unit}" for unit in c.some(letters, c.between(1, 4)))

    example = quantity(q)
    gold = (
        f"import re\n\n\ndef {name}(text):\n    units = {units!r}\n"
        f"    parts = re.findall(r'(\\d+)([a-z])', text)\n"
        f"    return sum(int(n) * units[u] for n, u in parts)\n"
    )
    also = (
        f"def {name}(text):\n    units, total, digits = {units!r}, 0, ''\n    for sign in text:\n"
        f"        if sign.isdigit():\n            digits += sign\n        else:\n"
        f"            total, digits = total + int(digits) * units[sign], ''\n    return total\n"
    )
    return python_task(
        draw,
        name,
        (
            f"A text such as '{example}' adds up quantities in several units: {text}. Write "
            f"{name}(text), which returns the total in {letters[0]} as a whole number. The units "
            f"come in any order.",
            f"Define {name}(text), which computes how many {letters[0]} a text like "
            f"'{example}' stands for, as an int. The units, in any order, are: {text}.",
            f"How many {letters[0]} is '{example}'? Such a text lists amounts in several units, "
            f"in any order, and means their sum; {text}. Write {name}(text), which answers the "
            "question for any text of this kind with an int.",
        ),
        gold,
        [[quantity(draw.world)] for _ in range(6)],
        also=(also,),
    )


@family("python", held_out=True)
def invented_operators(draw: Draw) -> Task:
    """Evaluate expressions with operators that the query defines."""
    q, name = draw.query, function_name(draw)
    known = [
        ("a + b", "the sum"),
        ("a * b", "the product"),
        ("a - b", "the left minus the right"),
        ("max(a, b)", "the larger one"),
        ("min(a, b)", "the smaller one"),
        ("abs(a - b)", "the distance"),
        ("a * 2 + b", "twice the left plus the right"),
    ]
    operators = q.some(known, draw.difficulty + 1)
    signs = q.some("@#$&?!^", len(operators))
    meaning = "; ".join(
        f"`{s}` gives {text}" for s, (_, text) in zip(signs, operators, strict=True)
    )
    table = ", ".join(
        f"'{sign}': lambda a, b: {code}" for sign, (code, _) in zip(signs, operators, strict=True)
    )
    from_right = draw.difficulty > 3
    order = "from right to left: the last is done first" if from_right else "from left to right"
    loop = (
        "    a = int(parts[-1])\n    for i in range(len(parts) - 2, 0, -2):\n"
        "        a = operators[parts[i]](int(parts[i - 1]), a)\n"
        if from_right
        else "    a = int(parts[0])\n    for i in range(1, len(parts), 2):\n"
        "        a = operators[parts[i]](a, int(parts[i + 1]))\n"
    )

    def expression(c: Choices) -> str:
        parts = [str(c.between(0, 20))]
        for _ in range(c.between(1, 2 + draw.difficulty)):
            parts += [c.one(signs), str(c.between(0, 20))]
        return " ".join(parts)

    example = expression(q)
    return python_task(
        draw,
        name,
        (
            f"Write {name}(text), which evaluates a text of whole numbers and operators with "
            f"blanks between them, strictly {order}, without precedence. {meaning}. It returns an "
            f"int.",
            f"Define {name}(text) for expressions like '{example}'. Operators have no "
            f"precedence and are applied {order}: {meaning}. Return the value.",
            f"Expressions such as '{example}' have operators of our own: {meaning}. No operator "
            f"binds more strongly than another; they are worked out {order}. Write {name}(text), "
            "which returns the value as an int. Numbers and operators are separated by blanks.",
        ),
        f"def {name}(text):\n    operators = {{{table}}}\n    parts = text.split()\n{loop}"
        f"    return a\n",
        [[expression(draw.world)] for _ in range(6)],
    )


@family("python")
def check_digit(draw: Draw) -> Task:
    """Tell whether a number with a check digit is valid."""
    q, name = draw.query, function_name(draw)
    level, length = draw.difficulty, draw.by_difficulty(4, 5, 6, 7, 8)
    weights = [q.between(1, 9) for _ in range(length)]
    modulus = q.one((7, 9, 10)) if level < 5 else 11
    start, first = q.between(1, 6), str(q.between(0, 9))
    rules = (
        "Hyphens in the text mean nothing; leave them out first.",
        "Of each product only the last digit counts.",
        f"The first digit is never {first}.",
        "If the remainder is 10, the last character is an X in place of a digit.",
    )
    note = "".join(f" {rule}" for rule in rules[: level - 1])

    def check(body: str) -> str:
        products = [int(d) * w for d, w in zip(body, weights, strict=True)]
        total = start + sum(n % 10 if level > 2 else n for n in products)
        return "X" if total % modulus == 10 else str(total % modulus)

    w = draw.world
    bodies = [first + _digits(w, length - 1), *(_digits(w, length) for _ in range(6))]
    while level == 5 and (check(bodies[1]) != "X" or bodies[1][0] == first):
        bodies[1] = _digits(w, length)
    codes = [body + (check(body) if w.chance(80) else "0") for body in bodies]
    codes[:2] = [body + check(body) for body in bodies[:2]]
    codes += [bodies[2] + ("1" if check(bodies[2]) == "0" else "0"), codes[1][:-1]]
    if level > 1:
        codes = [f"{code[:2]}-{code[2:]}" if w.chance(50) else code for code in codes]
    inputs = [[code] for code in (*codes, "", "x" * (length + 1))]
    lines = [
        *(["code = code.replace('-', '')"] if level > 1 else []),
        f"if len(code) != {length + 1} or not code[:-1].isdigit():\n        return False",
        *([f"if code[0] == '{first}':\n        return False"] if level > 3 else []),
        f"products = [int(d) * w for d, w in zip(code, {weights!r})]",
        *(["products = [n % 10 for n in products]"] if level > 2 else []),
        f"check = ({start} + sum(products)) % {modulus}",
        "return code[-1] == "
        + ("str(check)" if level < 5 else "('X' if check == 10 else str(check))"),
    ]
    return python_task(
        draw,
        name,
        (
            f"Write {name}(code), which returns True or False: whether a text is a valid code. It "
            f"has {length + 1} digits and nothing else. Multiply the first {length} by the weights "
            f"{weights}, add up, and add {start}: the last digit is the remainder modulo "
            f"{modulus}.{note}",
            f"A code has {length} digits and a check digit. To get it, multiply each of the "
            f"{length} digits by its weight, add {start} to the sum of the products, and take the "
            f"result modulo {modulus}. The weights are {weights}. Define {name}(code), which "
            f"returns for any text whether it is such a code (True or False).{note}",
            f"Is a code valid? Write {name}(code), which answers with True or False for any text. "
            f"A valid code is {length + 1} digits and nothing more. The last digit is the "
            f"remainder of S + {start} modulo {modulus}, where S adds up the other digits, each "
            f"times its weight; the weights are {weights}.{note}",
        ),
        f"def {name}(code):\n" + "".join(f"    {line}\n" for line in lines),
        inputs,
    )


def _digits(choices: Choices, count: int) -> str:
    return "".join(str(choices.between(0, 9)) for _ in range(count))

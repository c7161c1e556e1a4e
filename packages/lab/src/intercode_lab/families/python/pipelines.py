"""Families about several operations, one after the other."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.python.python_task import (
    WORDS,
    function_name,
    number_lists,
    python_task,
    sentence,
)


def _in_turn(texts: list[str]) -> str:
    """Return numbered steps as a text."""
    return " ".join(f"({number}) {text}." for number, text in enumerate(texts, 1))


def _body(name: str, argument: str, lines: list[str]) -> str:
    body = "".join(f"    {argument} = {line}\n" for line in lines)
    return f"def {name}({argument}):\n{body}    return {argument}\n"


@family("python")
def steps_on_numbers(draw: Draw) -> Task:
    """Apply several operations to a list of numbers."""
    q, name = draw.query, function_name(draw)
    divisor, factor, first = q.between(2, 5), q.between(2, 9), q.between(1, 3)
    low = q.between(-9, 9)
    plus = q.between(1, 99)
    steps = [
        (f"leave out the multiples of {divisor}", f"[n for n in numbers if n % {divisor}]"),
        (
            f"multiply every number by {factor} and add {plus}",
            f"[n * {factor} + {plus} for n in numbers]",
        ),
        (f"drop the first {first}", f"numbers[{first}:]"),
        ("turn the order around", "numbers[::-1]"),
        ("leave out repetitions, of which the first stays", "list(dict.fromkeys(numbers))"),
        (f"replace what is below {low} by {low}", f"[max(n, {low}) for n in numbers]"),
        (
            "replace each number by the sum of it and all before it",
            "[sum(numbers[: i + 1]) for i in range(len(numbers))]",
        ),
        (
            "replace the list by the differences of neighbours, the later minus the earlier one",
            "[b - a for a, b in zip(numbers, numbers[1:])]",
        ),
        (
            "sort by the last decimal digit of the absolute value, equal ones as they stand",
            "sorted(numbers, key=lambda n: abs(n) % 10)",
        ),
    ]
    chosen = q.some(steps, draw.difficulty + 1)
    text = _in_turn([step for step, _ in chosen])
    return python_task(
        draw,
        name,
        (
            f"Write {name}(numbers), which takes a list of whole numbers and returns a new list, "
            f"after these steps: {text}",
            f"Define a function {name} of one list of integers. It does the following in turn, and "
            f"returns the resulting list. {text}",
            f"{name}(numbers) shall return what becomes of a list of whole numbers when one does "
            f"this: {text} Write that function.",
        ),
        _body(name, "numbers", [code for _, code in chosen]),
        number_lists(draw.world, draw.by_difficulty(4, 5, 6, 7, 8)),
    )


@family("python", held_out=True)
def steps_on_texts(draw: Draw) -> Task:
    """Apply several operations to a text."""
    q, name = draw.query, function_name(draw)
    letter, other = q.some("aeiorstln", 2)
    least, mark = q.between(4, 6), q.one("-_+*/.~")
    steps = [
        ("reverse the order of the words", "' '.join(text.split()[::-1])"),
        ("spell every word backwards", "' '.join(w[::-1] for w in text.split())"),
        (
            f"leave out all words of fewer than {least} characters",
            f"' '.join(w for w in text.split() if len(w) >= {least})",
        ),
        (f"replace each small {letter} by {other}", f"text.replace('{letter}', '{other}')"),
        ("swap capital and small letters", "text.swapcase()"),
        (f"put a {mark} before every word", f"' '.join('{mark}' + w for w in text.split())"),
        ("leave out every second word, beginning with the second", "' '.join(text.split()[::2])"),
        (
            "sort the words by their length, equally long ones as they stand",
            "' '.join(sorted(text.split(), key=len))",
        ),
    ]
    chosen = q.some(steps, draw.difficulty + 1)
    text = _in_turn([step for step, _ in chosen])
    return python_task(
        draw,
        name,
        (
            f"Write {name}(text). The text has words with single spaces between them, and so has "
            f"the text that is returned. {text}",
            f"Define {name}, which gets words separated by single spaces, as one text, changes "
            f"them in these steps, and returns them in the same form: {text}",
            f"Program {name}(text). What goes in is one text of words with a single space between "
            f"two of them, and what it returns has the same form. In between, do this: {text}",
        ),
        _body(name, "text", [code for _, code in chosen]),
        [[sentence(draw.world, draw.world.between(2, 9))] for _ in range(draw.difficulty + 4)],
    )


@family("python")
def recurrence(draw: Draw) -> Task:
    """Compute a sequence from its first members and a rule."""
    q, name = draw.query, function_name(draw)
    order = draw.by_difficulty(1, 2, 2, 3, 3)
    start = [q.between(0, 20) for _ in range(order)]
    factors = [q.between(1, 6) for _ in range(order)]
    plus, modulus = q.between(1, 30), q.between(101, 9973)
    terms = " + ".join(f"{f} times a({f'n-{back}'})" for back, f in enumerate(factors, 1))
    given = ", ".join(f"a({n}) = {value}" for n, value in enumerate(start))
    new = " + ".join(f"{f} * a[-{back}]" for back, f in enumerate(factors, 1))
    rule, code = f"{terms} + {plus}", f"{new} + {plus}"
    if draw.difficulty > 3:
        rule, code = f"{rule} + n", f"{code} + len(a)"
    inputs = [[n] for n in range(order)]
    inputs += [[draw.world.between(order, 40 * draw.difficulty)] for _ in range(5)]
    return python_task(
        draw,
        name,
        (
            f"Write {name}(n), which returns a(n) of the sequence with {given}, in which every "
            f"later a(n) is the remainder of {rule} when divided by {modulus}.",
            f"A sequence begins with {given}. After that, a(n) is {rule}, modulo {modulus}. Define "
            f"{name}(n), which returns a(n).",
            f"Let {given}. For every larger n, a(n) is what remains of {rule} after division by "
            f"{modulus}. I need a function {name}(n) that returns a(n) for each n from 0 on.",
        ),
        f"def {name}(n):\n    a = {start!r}\n    while len(a) <= n:\n"
        f"        a.append(({code}) % {modulus})\n    return a[n]\n",
        inputs,
    )


@family("python")
def bands(draw: Draw) -> Task:
    """Name the band in which a number is."""
    q, name = draw.query, function_name(draw)
    count = draw.difficulty + 1
    limits = sorted(q.some(range(-40, 160), count))
    labels = q.some(WORDS, count + 1)
    below = q.chance(50)
    sign, said = ("<", "below") if below else ("<=", "up to and including")
    text = "; ".join(
        f"{said} {limit}: '{label}'" for limit, label in zip(limits, labels, strict=False)
    )
    tests = "".join(
        f"    if n {sign} {limit}:\n        return '{label}'\n"
        for limit, label in zip(limits, labels, strict=False)
    )
    near = [[limit + step] for limit in limits for step in (-1, 0, 1)]
    return python_task(
        draw,
        name,
        (
            f"Write {name}(n), which returns a word for a number. The first that fits counts: "
            f"{text}; else: '{labels[-1]}'.",
            f"Define {name}(n). It returns the word of the first condition that holds. "
            f"{text[0].upper()}{text[1:]}; anything else: '{labels[-1]}'.",
            f"Numbers belong to classes, of which the first that fits is the right one: {text}; "
            f"and '{labels[-1]}' for all others. Write {name}(n), which returns the class of n.",
        ),
        f"def {name}(n):\n{tests}    return '{labels[-1]}'\n",
        [*near, [draw.world.between(-99, 299)], [draw.world.between(-99, 299) + 0.5]],
    )

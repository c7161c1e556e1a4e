"""Families that need looking at what is in the sandbox."""

from __future__ import annotations

import base64
import json

from intercode.core.types import Task
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree
from intercode_lab.families.python.python_task import (
    FOLDER,
    WORDS,
    function_name,
    python_task,
    sentence,
)


@family("python", blind=0.05)
def undo_module(draw: Draw) -> Task:
    """Undo what a module does, which only running or reading it shows."""
    name, module = function_name(draw), draw.query.one(WORDS)
    shift, grow = draw.hidden.between(1, 25), draw.hidden.between(1, 9)
    period = draw.hidden.between(2, 5) if draw.difficulty > 2 else 2
    turned = draw.difficulty > 3 and draw.hidden.chance(50)
    tree = FileTree(FOLDER)
    tree.file(
        f"{module}.py",
        f"def encode(text):\n    text = text[::{-1 if turned else 1}]\n    out = []\n"
        f"    for place, sign in enumerate(text):\n"
        f"        move = {shift} + {grow} * (place % {period})\n"
        f"        out.append(chr((ord(sign) - 97 + move) % 26 + 97))\n    return ''.join(out)\n",
    )
    absent = _absent(name, module)
    w = draw.world
    inputs = [
        ["".join(chr(97 + w.index(26)) for _ in range(w.between(3, 6 * draw.difficulty)))]
        for _ in range(6)
    ]
    return python_task(
        draw,
        name,
        (
            f"The module {module} in the working directory has a function encode(text) for texts "
            f"of small letters a to z. Write {name}(code), which returns the text of which encode "
            f"returns that code.{absent}",
            f"Define {name}, the inverse of the function encode in {module}.py: for a code of "
            f"small letters it returns the text that encode turns into this code.{absent}",
            f"{module}.py in the working directory defines encode(text), which turns small "
            f"letters into other small letters. We need the way back: write {name}(code) so that "
            f"{name}(encode(text)) is text again, for any text of small letters.{absent}",
        ),
        f"def {name}(code):\n    out = []\n    for place, sign in enumerate(code):\n"
        f"        move = {shift} + {grow} * (place % {period})\n"
        f"        out.append(chr((ord(sign) - 97 - move) % 26 + 97))\n"
        f"    return ''.join(out)[::{-1 if turned else 1}]\n",
        inputs,
        turns=(
            f"import {module}\nprint({module}.encode('aaaaaaaa'), {module}.encode('abcdefgh'))",
        ),
        tree=tree,
        absent=[f"{module}.py"],
    )


@family("python", blind=0.05)
def failing_checks(draw: Draw) -> Task:
    """Find out from failing checks what a function must return."""
    name, module = function_name(draw), f"check_{draw.query.one(WORDS)}"
    keys = draw.query.some(WORDS, draw.by_difficulty(2, 3, 4, 5, 6))
    words = {key: draw.hidden.one(WORDS) for key in keys}
    secret = base64.b85encode(json.dumps(words).encode()).decode()
    tree = FileTree(FOLDER)
    tree.file(
        f"{module}.py",
        f"import base64\nimport json\n\n_WANTED = {secret!r}\n\n\ndef run(function):\n"
        f"    wanted = json.loads(base64.b85decode(_WANTED))\n"
        f"    for argument, result in wanted.items():\n        found = function(argument)\n"
        f"        assert found == result, (\n"
        f"            f'for {{argument!r}} it must return {{result!r}}, not {{found!r}}')\n"
        f"    print('all checks passed')\n",
    )
    known: dict[str, str] = {}
    turns = [f"import {module}"]
    for key, word in words.items():
        turns.append(f"{module}.run({known!r}.get)")
        known[key] = word
    absent = _absent(name, module)
    others = draw.world.some([word for word in WORDS if word not in keys], 2)
    return python_task(
        draw,
        name,
        (
            f"Write {name}(word), which returns a word for each of {', '.join(keys)}, and None for "
            f"anything else. The function run of the module {module} (in the working directory) "
            f"checks a function, {module}.run({name}), and says what is wrong.{absent}",
            f"Define {name}(word) so that {module}.run({name}) passes; {module} is a module in the "
            f"working directory, and its message says what it expects. The words are "
            f"{', '.join(keys)}; for every other one the function returns None.{absent}",
            f"The module {module} in the working directory tests functions: {module}.run(f) "
            f"reports the first mistake of f. Write {name}(word) so that {module}.run({name}) "
            f"finds none. It is about the words {', '.join(keys)}; for any other word return None."
            f"{absent}",
        ),
        f"def {name}(word):\n    return {words!r}.get(word)\n",
        [[key] for key in (*keys, *others)],
        turns=turns,
        tree=tree,
        absent=[f"{module}.py"],
    )


def _absent(name: str, module: str) -> str:
    return f" {module}.py is not there when {name} is tested, so {name} must not need it."


@family("python", blind=0.05, held_out=True)
def rule_in_file(draw: Draw) -> Task:
    """Apply a rule that a file states."""
    h, name = draw.hidden, function_name(draw)
    file = f"{draw.query.one(WORDS)}.txt"
    letter, position = h.one("aeio"), h.between(1, 4)
    sign = h.one("*+#=!-/_:~")
    rule, code = h.one(
        (
            (
                f"take only words that contain the letter {letter}, small or capital",
                f"'{letter}' in w.lower()",
            ),
            (
                f"take only words that do not contain the letter {letter}, small or capital",
                f"'{letter}' not in w.lower()",
            ),
        )
    )
    lines = [
        rule,
        f"of each of them keep all but the first {position} letters",
        f"join what is left with {sign}",
    ]
    joined = f"'{sign}'.join(w[{position}:] for w in words)"
    if draw.difficulty > 2:
        step = h.between(2, 3)
        lines.insert(
            1, f"of these, take every word whose place (1, 2, 3, ...) is a multiple of {step}"
        )
        joined = f"'{sign}'.join(w[{position}:] for w in words[{step - 1} :: {step}])"
    tree = FileTree(FOLDER)
    filler = [f"# {sentence(draw.world, 6)}" for _ in range(2 * draw.difficulty)]
    tree.file(file, "".join(f"{line}\n" for line in (*filler, *lines)))
    w = draw.world
    return python_task(
        draw,
        name,
        (
            f"Write {name}(text), which does to a text of words what the file {file} in the "
            f"working directory says, and returns the result.",
            f"The rules for {name}(text) are in {file}; the text has words with blanks between "
            f"them. Define the function.",
            f"The file {file} in the working directory states what has to be done with a text, "
            f"whose words are separated by blanks. Write {name}(text), which does that and "
            "returns the result.",
        ),
        f"def {name}(text):\n    words = [w for w in text.split() if {code}]\n"
        f"    return {joined}\n",
        [[sentence(w, w.between(12, 24))] for _ in range(6)],
        turns=(f"print(open('{file}').read())",),
        tree=tree,
    )

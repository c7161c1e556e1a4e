"""Families about line ends and encodings."""

from __future__ import annotations

import base64

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import FOLDERS, bash_task, directories, file_in, text
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_ACCENTED = ("café", "naïve", "Zürich", "señor", "déjà", "smörgås", "façade", "über", "Ångström")
_ENCODINGS = {
    "base64": base64.b64encode,
    "base32": base64.b32encode,
    "base16": base64.b16encode,
}


@family("bash")
def line_ends(draw: Draw) -> Task:
    """Convert files of one kind to Unix line ends."""
    folder, extension = draw.query.one(FOLDERS), draw.query.one((".txt", ".csv", ".md"))
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(3, 6, 12, 20, 32)):
        own = extension if number == 0 or draw.world.chance(60) else ".bat"
        lines, windows = text(draw.world, 3), number == 0 or draw.world.chance(50)
        content = lines.replace("\n", "\r\n") if windows else lines
        tree.file(file_in(draw, tree, folders, own), content)
    return bash_task(
        draw,
        (
            f"Convert all {extension} files below {folder} to Unix line endings (no carriage "
            "returns). Other files stay as they are.",
            f"Some {extension} files under {folder} have Windows line endings. Convert them to "
            f"Unix line endings, and change only {extension} files.",
            "The carriage returns at the ends of lines have to go: remove them from each file "
            f"below {folder} whose name ends in {extension}, and do not touch any other file.",
        ),
        f"find {folder} -name '*{extension}' -exec sed -i 's/\\r$//' {{}} +",
        tree,
        compare="changes",
        also=(
            f"for f in $(find {folder} -name '*{extension}'); do tr -d '\\r' < $f > x; "
            "cat x > $f; rm x; done",
        ),
    )


@family("bash")
def to_utf8(draw: Draw) -> Task:
    """Convert texts from ISO-8859-1 to UTF-8."""
    folder = draw.query.one(FOLDERS)
    tree = FileTree()
    folders = directories(draw, folder)
    for _ in range(draw.by_difficulty(1, 3, 6, 12, 20)):
        words = [*draw.world.some(_ACCENTED, 3), text(draw.world, 1).strip()]
        content = " ".join(draw.world.shuffled(words)) + "\n"
        tree.file(file_in(draw, tree, folders, ".txt"), content.encode("latin-1"))
    for _ in range(draw.difficulty):
        tree.file(file_in(draw, tree, folders, ".utf8"), f"{draw.world.one(_ACCENTED)}\n")
    return bash_task(
        draw,
        (
            f"The .txt files below {folder} are encoded in ISO-8859-1. Convert them to UTF-8 in "
            "place, and leave no other files behind. Other files are in UTF-8 already.",
            f"Re-encode each .txt file under {folder} from Latin-1 (ISO-8859-1) to UTF-8, under "
            "the same name, and leave no other files behind.",
            f"Our programs expect UTF-8, but the .txt files in {folder}, at any depth, are still "
            "in ISO-8859-1 (Latin-1). Convert each of them in place. All other files are in "
            "UTF-8 already, and no new file may be left behind.",
        ),
        f"for f in $(find {folder} -name '*.txt'); do iconv -f ISO-8859-1 -t UTF-8 $f > /tmp/x; "
        "cat /tmp/x > $f; rm /tmp/x; done",
        tree,
        compare="changes",
        also=(
            f"find {folder} -name '*.txt' | while read -r f; do "
            "c=$(iconv -f latin1 -t utf8 $f); printf '%s\\n' \"$c\" > $f; done",
        ),
    )


@family("bash")
def encoded_message(draw: Draw) -> Task:
    """Decode a message that was encoded several times."""
    kinds = [draw.query.one(sorted(_ENCODINGS)) for _ in range(draw.difficulty)]
    message = text(draw.world, 2 + draw.difficulty).encode()
    for kind in kinds:
        message = _ENCODINGS[kind](message)
    tree = FileTree()
    tree.file("message", message + b"\n")
    steps = ", then with ".join(kinds)
    decode = [f"basenc --{kind} -d" for kind in reversed(kinds)]
    return bash_task(
        draw,
        (
            f"The text in the file message was encoded with {steps}. Print the text.",
            f"Decode the file message, which somebody encoded with {steps}, and print it.",
            f"The file message was made from a text, by encoding it with {steps}. Undo this, and "
            "show the original text.",
        ),
        f"cat message | {' | '.join(decode)}",
        tree,
        compare="order",
    )

"""Families about searching and changing texts."""

from __future__ import annotations

from intercode.core.types import Task
from intercode_lab.families.bash.bash_task import FOLDERS, WORDS, bash_task, directories, file_in
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree


def _lines(draw: Draw, count: int, word: str) -> str:
    """Return lines, a third of them with a word, and some with words that contain it."""
    others = [w for w in WORDS if w != word]
    found = []
    for _ in range(count):
        line = draw.world.some(others, draw.world.between(2, 6))
        if draw.world.chance(35):
            extra = word if draw.world.chance(60) else draw.world.one((f"{word}s", f"re{word}"))
            line.insert(draw.world.index(len(line) + 1), extra)
        found.append(" ".join(line) + "\n")
    return "".join(found)


@family("bash")
def count_lines_with(draw: Draw) -> Task:
    """Count the lines that contain a word, in files of one kind."""
    word, folder = draw.query.one(WORDS), draw.query.one(FOLDERS)
    extension = draw.query.one((".txt", ".md", ".log"))
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(2, 4, 8, 14, 20)):
        own = extension if number == 0 or draw.world.chance(60) else ".bak"
        lines = f"{word} first\n" * (number == 0) + _lines(draw, 4 + 3 * draw.difficulty, word)
        tree.file(file_in(draw, tree, folders, own), lines)
    return bash_task(
        draw,
        (
            f"How many lines of the {extension} files below {folder} contain the whole word "
            f"{word}? Print the number.",
            f"Print the number of lines with the word {word} (not as a part of a longer word) in "
            f"all files under {folder} whose names end in {extension}.",
            f"Look into the files below {folder} whose names end in {extension}. In how many of "
            f"their lines, all files together, does {word} occur as a whole word? Print that "
            "number.",
        ),
        f"grep -rhw --include='*{extension}' {word} {folder} | wc -l",
        tree,
        also=(f"find {folder} -name '*{extension}' -exec cat {{}} + | grep -cw {word}",),
    )


@family("bash")
def replace_word(draw: Draw) -> Task:
    """Replace a word in files of one kind."""
    word, new = draw.query.some(WORDS, 2)
    folder, extension = draw.query.one(FOLDERS), draw.query.one((".txt", ".md", ".html"))
    tree = FileTree()
    folders = directories(draw, folder)
    for number in range(draw.by_difficulty(2, 4, 8, 14, 20)):
        own = extension if number == 0 or draw.world.chance(60) else ".bak"
        lines = f"{word} first\n" * (number == 0) + _lines(draw, 3 + 2 * draw.difficulty, word)
        tree.file(file_in(draw, tree, folders, own), lines)
    return bash_task(
        draw,
        (
            f"Replace the word {word} with {new} in every {extension} file below {folder}. Longer "
            f"words that contain {word} stay as they are.",
            f"In all files under {folder} whose names end in {extension}, replace every "
            f"{word} that is a whole word with {new}.",
            f"We no longer say {word}, but {new}. Correct every occurrence in the {extension} "
            f"files of {folder} and its subdirectories. Longer words that contain {word} stay as "
            "they are.",
        ),
        f"find {folder} -name '*{extension}' -exec sed -i 's/\\b{word}\\b/{new}/g' {{}} +",
        tree,
        compare="changes",
        also=(
            f"grep -rlw --include='*{extension}' {word} {folder} | xargs sed -i "
            f"'s/\\<{word}\\>/{new}/g'",
        ),
    )


@family("bash")
def most_frequent_word(draw: Draw) -> Task:
    """Print the word that occurs most often, and how often."""
    names = draw.query.some(WORDS, draw.difficulty)
    words = draw.world.some(WORDS, 5 + 2 * draw.difficulty)
    most = draw.world.between(6, 9) + draw.difficulty
    bag = [words[0]] * most
    for word in words[1:]:
        bag += [word] * draw.world.between(1, most - 2)
    bag = draw.world.shuffled(bag)
    tree = FileTree()
    for number, name in enumerate(names):
        part = bag[number :: len(names)]
        rows = [" ".join(part[i : i + 6]) for i in range(0, len(part), 6)]
        tree.file(f"{name}.txt", "\n".join(rows) + "\n")
    files = " ".join(f"{name}.txt" for name in sorted(names))
    listed = " and ".join(", ".join(files.split()).rsplit(", ", 1))
    together = " together" if len(names) > 1 else ""
    tree.file("other.bak", " ".join(draw.world.some(WORDS, 20)) + "\n")
    return bash_task(
        draw,
        (
            f"Which word occurs most often in {listed}{together}? Print the word, a space and how "
            "often it occurs.",
            f"Count how often each word occurs in {listed}{together}. Print the most frequent word "
            "and its count in the form: word 12",
            f"Find the most common word in {listed}{together}. Print it and the number of times it "
            "occurs, on one line with a space between the two.",
        ),
        f"cat {files} | tr -s ' ' '\\n' | sort | uniq -c | sort -rn | head -n 1 "
        "| awk '{ print $2, $1 }'",
        tree,
        also=(
            f"awk '{{ for (i = 1; i <= NF; i++) n[$i]++ }} END {{ for (w in n) if (n[w] > m) "
            f"{{ m = n[w]; b = w }} print b, m }}' {files}",
        ),
    )

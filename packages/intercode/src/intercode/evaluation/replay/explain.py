"""Explains the score of a recorded episode: plays its actions again and compares with the gold.

What it returns holds golds, so it is for people only; see results/explanation.py.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from intercode.core.errors import UsageError
from intercode.core.types import SUBMIT, FileEntry, State, Trajectory
from intercode.environments.base.env import InterCodeEnv
from intercode.environments.base.profiles import GOLD_SECONDS
from intercode.environments.base.progress.files import same_entry
from intercode.environments.base.row_comparison import normalize_rows
from intercode.environments.base.sandboxed_env import SandboxedEnv, uses_sandbox
from intercode.environments.bash.outputs import judges_output
from intercode.evaluation.replay.recorded_environments import ReplayOptions, open_recorded_env
from intercode.evaluation.replay.regrade import play_again
from intercode.results.explanation import Explanation, TextComparison
from intercode.results.statistics.metrics import is_failed
from intercode_sandbox.contract import BaseSandbox

MAX_FILES = 8
"""Files whose content is compared at most."""
MAX_BYTES = 64 << 10
"""The size above which the content of a file is not shown."""
_NO_FILE = "(no file)"
_CHANGED = "(another content each time)"
Files = Mapping[str, FileEntry]


def explain(episode: Trajectory) -> Explanation:
    """Return what was expected in an episode and what its actions left, from the gold and the
    actions, which both run again in sandboxes of their own.

    Raises UsageError for an episode that ended in an error, and for a record or a dataset that
    cannot be played again.
    """
    if is_failed(episode):
        raise UsageError(f"{episode.task} ended in an error: there is no answer to compare")
    with open_recorded_env(episode, ReplayOptions()) as env:
        play_again(env, episode)
        score, agent, gold = env.episode.score_with_states()
        notes = tuple(_notes(env, episode, score.value))
        comparisons: list[TextComparison] = []
        if agent is not None and gold is not None:
            if agent.rows is not None and (columns := score.details.get("columns")):
                rows = tuple(tuple(row[n] for n in columns) for row in agent.rows)
                agent = replace(agent, rows=rows)
                places = ", ".join(str(n + 1) for n in columns)
                notes = (*notes, f"the answer's columns are compared in the order {places}")
            if gold.answer is not None and agent.answer is None:
                agent = replace(agent, answer=_last_answer(episode))
            judged = "similarity" not in score.details or judges_output(env.task)
            comparisons += _comparisons(env, agent, gold, judged)
            if uses_sandbox(env) and not agent.tests:
                comparisons += compare_contents(env, agent.files, gold.files)
        golds = env.task.golds
        other_form = bool(score.parts.get("other_form") or score.details.get("other_form"))
    return Explanation(golds, score.value, tuple(comparisons), notes, other_form)


def _last_answer(episode: Trajectory) -> str:
    """Return the last answer that was submitted, also one that the environment refused."""
    answers = [words[2] for s in episode.steps if (words := s.action.partition(" "))[0] == SUBMIT]
    return answers[-1].strip() if answers else ""


def _notes(env: InterCodeEnv, episode: Trajectory, score: float) -> Iterator[str]:
    recorded = episode.steps[-1].score_value if episode.steps else None
    if recorded is not None and abs(recorded - score) > 1e-6:
        yield f"the actions now reach the score {score:zg}, not {recorded:zg} as recorded"
    known = episode.run.get("dataset_hash")
    if known and known != env.dataset.hash:
        yield f"{env.dataset.name} has changed since this episode was played"


def _comparisons(
    env: InterCodeEnv, agent: State, gold: State, judged: bool
) -> Iterator[TextComparison]:
    """Yield what the rewards of the environments compare."""
    if gold.answer is not None:
        yield TextComparison("answer", agent.answer or "", gold.answer, "the answer differs")
        return
    if agent.tests:
        failed = [test for test in agent.tests if not test.passed]
        given = [f"{test.error or test.output or 'failed'}".partition("\n")[0] for test in failed]
        expected = [" ".join(test.test.split()) for test in failed]
        what = f"tests that fail, of {len(agent.tests)}" if failed else f"{len(agent.tests)} tests"
        cause = f"{len(failed)} of {len(agent.tests)} tests fail"
        yield TextComparison(what, _text(given), _text(expected), cause)
        return
    if agent.rows is not None and gold.rows is not None:
        yield _compare_rows(agent, gold)
        return
    if not env.task.golds:
        return
    if agent.status or gold.status:
        theirs, ours = (sorted(f"{code} {path}" for path, code in s.status) for s in (gold, agent))
        yield TextComparison("git status", _text(ours), _text(theirs), "git status differs")
    elif agent.files or gold.files:
        yield _compare_files(agent.files, gold.files)
    output = _ended(agent.output if agent.answer is None else agent.answer)
    gold_output = _ended(gold.output)
    if not judged and output:
        yield TextComparison("output (not judged)", output, gold_output)
    elif judged and gold_output.strip():
        yield TextComparison("output", output, gold_output, "output differs")
    elif judged and output.strip():
        cause = "something was printed although nothing should be"
        yield TextComparison("output (nothing should be printed)", output, gold_output, cause)
    if agent.probe_output or gold.probe_output:
        probed = _ended(agent.probe_output)
        yield TextComparison("state", probed, _ended(gold.probe_output), "state differs")


Row = tuple[Hashable, ...]


def _compare_rows(agent: State, gold: State) -> TextComparison:
    """Compare results of a database: the rows that only one has, or the order of the same rows."""
    assert agent.rows is not None and gold.rows is not None
    ours, theirs = normalize_rows(agent.rows), normalize_rows(gold.rows)
    extra, missing = Counter(ours) - Counter(theirs), Counter(theirs) - Counter(ours)
    if not extra and not missing:
        what = "rows, in their order" if gold.ranks is not None else "rows"
        given, wanted = _text(map(repr, agent.rows)), _text(map(repr, gold.rows))
        return TextComparison(what, given, wanted, "order of the rows differs")
    extras = [repr(row) for row, key in zip(agent.rows, ours, strict=True) if _take(extra, key)]
    missed = [repr(row) for row, key in zip(gold.rows, theirs, strict=True) if _take(missing, key)]
    common = len(agent.rows) - len(extras)
    return TextComparison(
        f"rows that only one side has ({common} are in both)",
        _text(extras),
        _text(missed),
        f"{_count(len(extras), 'wrong row')}, {_count(len(missed), 'missing row')}",
    )


def _take(counts: Counter[Row], key: Row) -> bool:
    counts[key] -= 1
    return counts[key] >= 0


def _compare_files(agent: Mapping[str, FileEntry], gold: Mapping[str, FileEntry]) -> TextComparison:
    """Compare the changes of files: those that differ, or all if none does."""
    paths = sorted({*agent, *gold})
    differ = [
        path
        for path in paths
        if path not in agent or path not in gold or not _is_same(agent[path], gold[path])
    ]
    shown = differ or paths
    sides = [_text(_describe(path, side.get(path)) for path in shown) for side in (agent, gold)]
    what = f"files that differ, of {len(paths)} that changed" if differ else "changed files"
    missed, extra = (sum(path not in side for path in differ) for side in (agent, gold))
    counts = {
        "not changed": missed,
        "changed in another way": len(differ) - missed - extra,
        "changed in addition": extra,
    }
    causes = (f"{_count(n, 'path')} {how}" for how, n in counts.items() if n)
    return TextComparison(what, sides[0], sides[1], ", ".join(causes))


def _count(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _is_same(a: FileEntry, b: FileEntry) -> bool:
    return a.kind == b.kind and same_entry(a, b)


def _describe(path: str, entry: FileEntry | None) -> str:
    """Return the state of a path, and the path last: it may be cut where there is little room."""
    if entry is None:
        return f"not changed  {path}"
    if entry.kind == "gone":
        return f"deleted  {path}"
    if entry.kind == "link":
        return f"link to {entry.target}  {path}"
    if entry.kind == "file":
        return f"{entry.mode:o}, {entry.size} bytes, {entry.digest[:8]}  {path}"
    return f"{entry.kind} {entry.mode:o}  {path}"


def _ended(text: str | None) -> str:
    return (text or "").rstrip("\n")


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines)


def compare_contents(env: SandboxedEnv, agent: Files, gold: Files) -> list[TextComparison]:
    """Return the contents of the files whose content differs, at most ``MAX_FILES`` of them.

    The agent's are read from the sandbox of its episode, the gold's from another one in
    which it runs again. A file that is large, is no text, or that the gold now leaves with another
    content is described in words.
    """
    paths = [path for path in sorted({*agent, *gold}) if _content_differs(path, agent, gold)]
    paths = paths[:MAX_FILES]
    if not paths:
        return []
    ours = [_read(env.scored_sandbox, path, agent.get(path)) for path in paths]
    theirs = _gold_contents(env, paths, gold)
    return [
        TextComparison(f"content of {path}", given, expected)
        for path, given, expected in zip(paths, ours, theirs, strict=True)
        if given != expected  # equal for a change of the mode only
    ]


def _content_differs(path: str, agent: Files, gold: Files) -> bool:
    """Return whether one side has a file with a content that the other has not."""
    found = (agent.get(path), gold.get(path))
    ours, theirs = (e.digest if e and e.kind == "file" else "" for e in found)
    return ours != theirs


def _gold_contents(env: SandboxedEnv, paths: Sequence[str], files: Files) -> list[str]:
    """Return the contents that a gold leaves. Of several golds, the one that leaves these files."""
    contents: list[str] = []
    for gold in env.task.golds:
        with closing(env.open_workspace()) as workspace:
            workspace.run(gold, GOLD_SECONDS)
            contents = [_read(workspace.sandbox, path, files.get(path)) for path in paths]
        if _CHANGED not in contents:
            break
    return contents


def _read(sandbox: BaseSandbox, path: str, entry: FileEntry | None) -> str:
    """Return the content of a file as text. With the entry of a changed file, only that content."""
    try:
        data = sandbox.read(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return _NO_FILE
    except OSError as e:
        return f"(not shown: {e.strerror or e})"
    if entry and entry.kind == "file" and hashlib.sha256(data).hexdigest() != entry.digest:
        return _CHANGED
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError:
        return f"(no text: {len(data)} bytes)"

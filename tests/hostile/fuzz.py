"""Random bytes and mutated commands as actions, in sandboxes that are copied and replaced at
random.

Each action must end by its limit. At random, the next exit status is checked, and that a
sandbox contains nothing of another one.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from hostile.trial import BACKENDS, ended
from intercode import datasets
from intercode.core.errors import SandboxLostError, UsageError
from intercode.core.types import ExecResult
from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox.contract import BaseSandbox

PIECES = (
    ">&50",
    "exec 50>&-",
    "<&62",
    "<&255",
    ">/dev/null",
    "2>&1",
    "<<E\n",
    "<<<",
    "$(",
    "`",
    "'",
    '"',
    "\\",
    "&",
    ";",
    "|",
    "||",
    "&&",
    "(",
    ")",
    "{",
    "}",
    "\n",
    "\t",
    "\0",
    "#",
    "!",
    "*",
    "?",
    "~",
    "kill -9 $$",
    "kill -STOP $$",
    "kill -9 -1",
    "exit 3",
    "exec true",
    "return 4",
    "break",
    "set -e",
    "set -u",
    "set -x",
    "set +o posix",
    "printf 'x 0 /\\0' >&50",
    "trap 'exit 5' DEBUG",
    "trap '' RTMAX",
    "unset PATH",
    "IFS=0",
    "cd /tmp",
    "cd ..",
    "sleep 9 &",
    "while :; do",
    "done",
    "if",
    "fi",
    "case",
    "esac",
    "function f",
    "declare -r x=1",
    "eval",
    "readonly PWD",
    "shopt -s extdebug",
    "\ud800",
    "\udcff",
    "é",
    "🙂",
    "${x",
    "$((",
    "[[",
    "]]",
    "exec 1>&-",
    "wait",
    "ulimit -n 5",
    "yes >&50 &",
    "set -r",
    "enable -n .",
)


_TELL = "set; builtin echo /tmp/* /root/*; cat /tmp/* | tail -n 99"


def corpus() -> list[str]:
    """Commands to mutate: golds of the package's tasks and, where available, of nl2bash."""
    found = [gold for task in datasets.load("starter").tasks for gold in task.golds]
    try:
        found += [gold for task in datasets.load("nl2bash").tasks for gold in task.golds]
    except UsageError:  # the authors' data are not installed
        pass
    return found


def random_bytes(rng: random.Random) -> str:
    """Return random bytes, mostly those with a meaning for a shell."""
    length = rng.choice((1, 3, 10, 40, 200, 200, 5000))
    if rng.random() < 0.5:
        return rng.randbytes(length).decode("utf-8", "surrogateescape")
    letters = "$(){}[]<>|&;'\"`\\#!*?~=+-0123456789abcdefx \n\t" + chr(rng.randrange(1, 256))
    return "".join(rng.choices(letters, k=length))


def mutated(rng: random.Random, seeds: Sequence[str], pieces: Sequence[str] = PIECES) -> str:
    """Return a command of ``seeds`` with one to five pieces removed, doubled, replaced or
    inserted."""
    text = rng.choice(seeds)
    for _ in range(rng.randint(1, 5)):
        a, b = sorted(rng.randint(0, len(text)) for _ in "ab")
        how = rng.randrange(6)
        if how == 0:
            text = text[:a] + text[b:]
        elif how == 1:
            text = text[:b] + text[a:b] * rng.randint(1, 4) + text[b:]
        elif how == 2:
            text = text[:a] + chr(rng.randrange(1, 256)) + text[a + 1 :]
        elif how == 3:
            other = rng.choice(seeds)
            text = text[:a] + other[rng.randint(0, len(other)) :]
        else:
            text = f"{text[:a]}{rng.choice(' ;|')}{rng.choice(pieces)} {text[a:]}"
    return text[:20_000]


@dataclass
class Subject:
    """A sandbox with its session, its mark, and the marks from the sandbox that it was copied
    from."""

    sandbox: BaseSandbox
    session: BashSession
    mark: str
    marks: set[str]
    actions: list[str] = field(default_factory=list)

    def close(self) -> None:
        """End the session and the sandbox."""
        self.session.close()
        self.sandbox.close()


class Fuzz:
    """A fuzzing run with its own seed. ``counts`` holds the events; AssertionErrors report
    failures."""

    def __init__(self, seed: int, backend: str = "namespace", sandboxes: int = 3) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []
        self.histories: list[list[str]] = []  # all actions of the sandbox, one list per failure
        self._open = BACKENDS[backend]
        self.check_seconds = 1.0  # a shell that the actions have left busy answers no check
        self._marks: set[str] = set()
        self.subjects = [self._fresh(self._open(), set()) for _ in range(sandboxes)]

    def _fresh(self, sandbox: BaseSandbox, inherited: set[str]) -> Subject:
        mark = f"mark{self.rng.getrandbits(64):016x}"
        self._marks.add(mark)
        session = BashSession(sandbox)
        session.run(f"{mark}={mark}; echo {mark} > /tmp/{mark}", 60)
        return Subject(sandbox, session, mark, inherited | {mark})

    def run(self, actions: Sequence[str]) -> None:
        """Send every action to one of the sandboxes."""
        for action in actions:
            i = self.rng.randrange(len(self.subjects))
            subject = self.subjects[i]
            try:
                self._act(subject, action)
                if self.rng.random() < 0.05 or "250" in action:
                    self._check(subject)
                if self.rng.random() < 0.01:
                    self.subjects[i] = self._copy(subject)
                elif len(subject.actions) > 100:
                    self._replace(i)
            except SandboxLostError as e:
                self.counts["lost sandboxes"] += 1
                self._fault(subject, f"the sandbox was lost: {e}")
                self._replace(i)
            except Exception as e:
                self._fault(subject, f"{type(e).__name__}: {e}")
                self._replace(i)

    def _act(self, subject: Subject, action: str) -> None:
        subject.actions.append(action)
        limit = self.rng.choice((0.02, 0.05, 0.1, 0.2))
        result = self._timed(subject, action, limit)
        self.counts["actions"] += 1
        self.counts["timed out"] += result.timed_out
        self.counts["shell restarted"] += "[the shell ended;" in result.observation
        assert (result.exit_code is None) >= result.timed_out, f"time-out with a status: {result}"

    def _timed(self, subject: Subject, action: str, limit: float) -> ExecResult:
        return ended(lambda: subject.session.run(action, limit), f"{action[:60]!r}")

    def _check(self, subject: Subject) -> None:
        """Check the next exit status, and that nothing of another sandbox is visible."""
        status = self.rng.randrange(1, 120)
        result = self._timed(subject, f"(builtin exit {status})", self.check_seconds)
        if not result.timed_out and "[the shell ended;" not in result.observation:
            self.counts["statuses checked"] += 1
            told = result.exit_code == 127 and "[no shell can be started" in result.observation
            true = result.exit_code == status or told
            assert true, f"the status {result.exit_code} for {status}"
        seen = self._timed(subject, _TELL, self.check_seconds)
        known = {mark for mark in self._marks if mark in seen.output}
        self.counts["states checked"] += 1
        assert known <= subject.marks, f"it knows of other sandboxes: {known - subject.marks}"

    def _copy(self, subject: Subject) -> Subject:
        """Continue in a copy of the sandbox, with a new shell."""
        self.counts["copies"] += 1
        copy = subject.sandbox.fork()
        subject.close()
        return self._fresh(copy, subject.marks)

    def _replace(self, i: int) -> None:
        self.subjects[i].close()
        self.subjects[i] = self._fresh(self._open(), set())
        self.counts["new sandboxes"] += 1

    def _fault(self, subject: Subject, what: str) -> None:
        self.counts["faults"] += 1
        self.faults.append(f"{what}; seed {self.seed}; last actions: {subject.actions[-3:]!a}")
        self.histories.append(subject.actions)

    def close(self) -> None:
        """Close every sandbox."""
        for subject in self.subjects:
            subject.close()

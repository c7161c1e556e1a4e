"""Token-level records for training, from the endpoint's own token ids. Nothing is tokenised
again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.export.base import ExportResult, exported_metadata, write_jsonl
from intercode.results.tokens.gate import TokenCheck, check_episodes, describe_refusals


def export(episodes: Sequence[Trajectory], out: Path, *, allow: str = "") -> ExportResult:
    """Write one line for each branch of each episode; see docs/exports.md.

    Episodes with a fault are left out, and those without ids. ``allow`` has the kinds of faults
    that do not count, with commas between them. Raises UsageError if no episode is left, and
    UnknownNameError for another kind.
    """
    checks = check_episodes(episodes, allow=list(filter(None, allow.split(","))))
    known = [check for check in checks if check.has_ids]
    if not known:
        raise UsageError(
            "no turn of these episodes holds token ids: they are recorded if the endpoint returns "
            "them and the run has the model options token_ids=true and logprobs=true"
        )
    refusals = describe_refusals(known)
    sound = [check for check in known if not check.faults]
    if not sound:
        raise UsageError("; ".join(["no episode is left", *refusals]))
    count = write_jsonl(out, (row for check in sound for row in _rows(check)))
    without = len(checks) - len(known)
    notes = [f"{without} episodes hold no token ids"] if without else []
    return ExportResult((out,), count, (*notes, *refusals))


def _rows(check: TokenCheck) -> Iterator[dict[str, Any]]:
    calls = check.trace.calls
    for segment, row in enumerate(check.trace.rows(check.episode.id)):
        turns = [
            {"turn": calls[c].turn, "begins": begin, "ends": end, "reward": calls[c].score}
            for c, begin, end in row.replies
        ]
        yield {
            **exported_metadata(check.episode),
            "segment": segment,
            "shared": row.shared,
            "ids": row.ids,
            "mask": row.mask,
            "logprobs": row.logprobs,
            "turns": turns,
        }

"""Token-level records for training, from the endpoint's own token ids. Nothing is tokenised
again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Trajectory
from intercode.results.export.base import ExportResult, exported_metadata, write_jsonl
from intercode.results.tokens import TokenCall, TokenRow
from intercode.results.tokens.gate import TokenCheck, check_episodes, describe_refusals


def export(episodes: Sequence[Trajectory], out: Path, *, allow: str = "") -> ExportResult:
    """Write one line for each branch of each episode; see docs/exports.md.

    Episodes with a fault are left out, and those without ids. ``allow`` has the kinds of faults
    that do not count, with commas between them. Raises UsageError if no episode is left, and
    UnknownNameError for another kind.
    """
    kinds = [kind.strip() for kind in allow.split(",")]
    checks = check_episodes(episodes, allow=list(filter(None, kinds)))
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
    count = write_jsonl(out, _rows(sound))
    without = len(checks) - len(known)
    notes = [f"{without} episodes hold no token ids"] if without else []
    return ExportResult((out,), count, (*notes, *refusals))


def _rows(checks: Iterable[TokenCheck]) -> Iterator[dict[str, Any]]:
    for _, family in groupby(checks, key=lambda check: id(check.trace)):
        episodes = {check.episode.id: check for check in family}
        trace = next(iter(episodes.values())).trace
        for name, rows in groupby(trace.rows(*episodes), key=lambda row: row.episode):
            for segment, row in enumerate(rows):
                yield _row(episodes[name].episode, trace.calls, segment, row)


def _row(
    episode: Trajectory, calls: Sequence[TokenCall], segment: int, row: TokenRow
) -> dict[str, Any]:
    turns = [
        {"turn": calls[c].turn, "begins": begin, "ends": end, "reward": calls[c].score}
        for c, begin, end in row.replies
    ]
    return {
        **exported_metadata(episode),
        "segment": segment,
        "shared": row.shared,
        "ids": row.ids,
        "mask": row.mask,
        "logprobs": row.logprobs,
        "turns": turns,
    }

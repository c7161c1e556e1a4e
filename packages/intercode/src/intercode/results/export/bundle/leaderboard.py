"""A page of results from bundles: one HTML file without scripts or external resources.

Results share a table only if they have the same tasks, profile, scoring, image, architecture and
sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from intercode.core.errors import UsageError
from intercode.core.types import Usage
from intercode.environments.recorded_descriptions import description_of
from intercode.results.export.bundle.bundle import Bundle, read_bundle
from intercode.results.export.bundle.receipt import Receipt, read_receipt
from intercode.results.statistics.metrics import known_usage
from intercode_sandbox.valid_text import replace_surrogates

PAGE = "index.html"
TABLE_CONDITIONS = (
    "environment",
    "dataset",
    "dataset_hash",
    "profile",
    "scoring",
    "reward",
    "image",
    "image_digest",
    "arch",
    "tier",
    "network",
    "limits",
    "policy",
    "comparable",
)
"""Metadata that the rows of one table have in common; the tasks are compared as well."""
_CAPTION_METADATA = ("profile", "scoring", "image", "image_digest", "arch", "tier", "network")
_COLUMNS = (
    "agent",
    "model",
    "turns at most",
    "solved",
    "success",
    "95 % interval",
    "cost",
    "verified",
)

UNVERIFIABLE = (
    "Verification shows that the recorded actions give the recorded results. It cannot show who "
    "wrote the actions: whether that was the named agent and model, whether golds were known or "
    "in the training data, whether this is the best of many runs, and whether tokens and cost are "
    "true."
)
"""What a reader of the page must not take for verified."""
_STYLE = """
:root { color-scheme: light dark; --line: #8886; --ok: #00664c; --bad: #a33b00; }
@media (prefers-color-scheme: dark) { :root { --ok: #5fd0ac; --bad: #ffab73; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 2.5rem; width: 100%; }
caption { text-align: left; font-size: .85rem; padding-bottom: .5rem; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .7rem; text-align: left; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.bar { background: linear-gradient(to right, currentColor var(--v), transparent var(--v));
  border: 1px solid var(--line); display: block; height: .5rem; opacity: .55; width: 100%; }
.ok { color: var(--ok); } .bad { color: var(--bad); } .scroll { overflow-x: auto; }
"""


@dataclass(frozen=True)
class LeaderboardRow:
    """A bundle and the receipt of its verification."""

    bundle: Bundle
    receipt: Receipt | None


def write_leaderboard(paths: Sequence[Path], out: Path) -> Path:
    """Write the page for bundles into the directory ``out``, and return its path.

    Raises DataError for a modified bundle, UsageError for a bundle that is given twice.
    """
    bundles = [read_bundle(path) for path in paths]
    seen: dict[str, Path] = {}
    for bundle in bundles:
        if bundle.sha256 in seen:
            raise UsageError(f"{bundle.path} is the same bundle as {seen[bundle.sha256]}")
        seen[bundle.sha256] = bundle.path
    rows = [LeaderboardRow(b, read_receipt(b.path, b.sha256)) for b in bundles]
    out.mkdir(parents=True, exist_ok=True)
    page = out / PAGE
    page.write_text("\n".join(_render_page(rows)) + "\n", encoding="utf-8")
    return page


def comparable_tables(rows: Sequence[LeaderboardRow]) -> list[list[LeaderboardRow]]:
    """Return rows by what they must have in common to be compared, each table's best result first.
    Results that verification has refuted come last."""
    tables: dict[str, list[LeaderboardRow]] = {}
    for row in rows:
        tables.setdefault(repr(_table_key(row.bundle)), []).append(row)
    return [sorted(same, key=_rank) for _, same in sorted(tables.items())]


def _table_key(bundle: Bundle) -> tuple[Any, ...]:
    metadata = bundle.metadata
    return (*(str(metadata.get(name)) for name in TABLE_CONDITIONS), bundle.results["task_set"])


def _rank(row: LeaderboardRow) -> tuple[bool, float, str]:
    success = row.bundle.results["success"]
    return (_is_refuted(row), -(success or 0.0), row.bundle.sha256)


def _is_refuted(row: LeaderboardRow) -> bool:
    return row.receipt is not None and not row.receipt.equal


def _render_page(rows: Sequence[LeaderboardRow]) -> Iterator[str]:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>InterCode results</title>\n<style>{_STYLE}</style>\n</head>\n<body>"
    yield "<h1>InterCode results</h1>"
    yield (
        "<p>Results share a table only where they rest on the same tasks and were obtained under "
        "the same conditions. An episode that ended in an error of the infrastructure (failed) "
        "counts as not solved. <em>Verified</em>: so many of the recorded episodes were executed "
        "again by the author of this page, and every observation and reward was reproduced. "
        "Results that this refuted come last.</p>"
    )
    yield f"<p>{UNVERIFIABLE}</p>"
    for same in comparable_tables(rows):
        yield from _render_table(same)
    yield "</body>\n</html>"


def _render_table(rows: Sequence[LeaderboardRow]) -> Iterator[str]:
    first = rows[0].bundle
    metadata, results = first.metadata, first.results
    yield f"<h2>{_escape_text(metadata.get('dataset'))}</h2>"
    yield '<div class="scroll"><table>'
    digest = str(metadata.get("dataset_hash") or "?")[:8]
    caption = [f"{results['tasks']} tasks (set {results['task_set']}), data {digest}"]
    caption += [
        f"{name} {_shorten(metadata[name])}" for name in _CAPTION_METADATA if metadata.get(name)
    ]
    if metadata.get("comparable") is False and description_of(metadata).image != "none":
        caption.append("not comparable: the programs under test are one machine's own")
    yield f"<caption>{_escape_text('; '.join(caption))}</caption>"
    heads = "".join(
        f'<th scope="col"{_alignment(name)}>{_escape_text(name)}</th>' for name in _COLUMNS
    )
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        yield "<tr>" + "".join(_render_cells(row)) + "</tr>"
    yield "</tbody></table></div>"


def _render_cells(row: LeaderboardRow) -> Iterator[str]:
    metadata, results = row.bundle.metadata, row.bundle.results
    again = " (graded again)" if metadata.get("regraded_from") else ""
    yield f'<th scope="row">{_escape_text(metadata.get("agent"))}{again}</th>'
    yield f"<td>{_escape_text(metadata.get('model') or '-')}</td>"
    yield f'<td class="n">{_escape_text(metadata.get("max_turns") or "-")}</td>'
    failed = f" ({results['failed']} errors)" if results["failed"] else ""
    yield f'<td class="n">{results["solved"]} / {results["episodes"]}{failed}</td>'
    success = results["success"] or 0.0
    bar = f'<span class="bar" style="--v: {success:.1f}%"></span>'
    bound = 100 * (results["solved"] + results["failed"]) / results["episodes"]
    at_most = f" (at most {bound:.1f} %)" if results["failed"] else ""
    yield f'<td class="n">{success:.1f} %{at_most}{bar}</td>'
    known = results["low"] is not None
    span = f"{results['low']:.1f} to {results['high']:.1f}" if known else "-"
    yield f'<td class="n">{span}</td>'
    cost = sum(map(known_usage, row.bundle.episodes), Usage()).cost
    yield f'<td class="n">{"-" if cost is None else f"${cost:.2f}"}</td>'
    yield f"<td>{_verification_cell(row.receipt)}</td>"


def _verification_cell(receipt: Receipt | None) -> str:
    if receipt is None:
        return "not verified"
    day = _escape_text(receipt.at[:10])
    counts = f"{receipt.episodes} of {receipt.of} episodes"
    if receipt.equal:
        return f'<span class="ok">✓ {counts} reproduced ({day})</span>'
    first = f"{receipt.differing} of {receipt.episodes} episodes differ, first {receipt.first}"
    return f'<span class="bad">✗ {_escape_text(first)} ({day})</span>'


def _shorten(value: object) -> str:
    """Return a value as text, a digest shortened."""
    text = str(value)
    return text[:19] if text.startswith("sha256:") else text


def _alignment(name: str) -> str:
    return ' class="n"' if name not in ("agent", "model", "verified") else ""


def _escape_text(value: object) -> str:
    return escape(replace_surrogates(" ".join(str(value).split())))

"""Tables as LaTeX: balanced, escaped, with the rules of booktabs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from intercode.results import report
from intercode.results.latex import escape_latex
from intercode.results.rendering import render
from intercode.results.tables import Table

TABLE = Table(
    "my table",
    "50 % of A_B & C",
    ("model", "Single a", "Single b", "Single all", "turns"),
    (("gpt_4 {x} #1 ^~\\$|<>", 1.0, None, 33.33, 7.254), ("m", 100.0, 2.0, 3.0, 1.0)),
    ("a note: 5 %",),
    (("turns", 2),),
)


def test_a_table_has_rules_headings_and_figures() -> None:
    text = render([TABLE], "latex")
    lines = text.splitlines()
    assert lines[1:6] == [
        r"\begin{table}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        r"\caption{50 \% of A\_B \& C}",
        r"\label{tab:my-table}",
        r"\begin{tabular}{lrrrr}",
    ]
    assert lines[6:11] == [
        r"\toprule",
        r" & \multicolumn{3}{c}{Single} &  \\",
        r"\cmidrule(lr){2-4}",
        r"model & a & b & all & turns \\",
        r"\midrule",
    ]
    assert lines[12] == r"m & 100.0 & 2.0 & 3.0 & 1.00 \\"
    assert lines[13:] == [
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\footnotesize a note: 5 \%",
        r"\end{table}",
    ]


def test_every_special_character_is_taken_literally() -> None:
    shown = escape_latex('a\\b{c}&%$#_~^<>|"\n x')
    assert shown == (
        r"a\textbackslash{}b\{c\}\&\%\$\#\_\textasciitilde{}\textasciicircum{}"
        r"\textless{}\textgreater{}\textbar{}\textquotedbl{} x"
    )


@pytest.mark.paper
def test_every_row_of_the_papers_tables_has_as_many_cells_as_its_head(recorded_dir: Path) -> None:
    text = report.render(report.build([recorded_dir / "bash"]), "latex")
    for block in re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        kinds = re.match(r"\{([lr]+)\}", block)
        assert kinds is not None
        rows = [line for line in block.splitlines() if line.endswith(r"\\")]
        assert len(rows) > 1
        for row in rows:
            cells = re.split(r"(?<!\\)&", row)
            spans = [int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            assert len(cells) + sum(spans) == len(kinds[1])
    depth = text.replace(r"\{", "").replace(r"\}", "")
    assert depth.count("{") == depth.count("}")
    assert re.search(r"(?<!\\)[%]", text.split("\n", 1)[1]) is None

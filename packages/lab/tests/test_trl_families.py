"""Tasks of families in TRL."""

from __future__ import annotations

import pytest

from intercode.core.errors import (
    UsageError,
)
from intercode.integrations.trl import (
    rows,
)

pytestmark = pytest.mark.sandbox


def test_rows_of_families_have_a_seed() -> None:
    spec = "families:bash/trail[difficulty=1..2]"
    drawn = [row["seed"] for row in [*rows("bash", spec), *rows("bash", spec)]]
    assert len(set(drawn)) == 4 and all(isinstance(s, int) and 0 <= s < 2**53 for s in drawn)
    assert {row["seed"] for row in rows("bash", "starter")} == {None}
    for wrong in (5, "12", [-1], []):
        with pytest.raises(UsageError, match="seeds are a range such as"):
            rows("bash", spec, seeds=wrong)  # type: ignore[arg-type]
    made = rows("bash", spec, seeds=range(7, 9))
    assert [(row["task"], row["seed"]) for row in made] == [
        (f"families/bash/trail/{difficulty}", seed) for seed in (7, 8) for difficulty in (1, 2)
    ]

"""The partial credit of tasks of families for doing nothing."""

from __future__ import annotations

import pytest

import intercode
from intercode.datasets import load

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize("environment", ["bash", "sql"])
@pytest.mark.parametrize("split", ["", "[split=test]"])
def test_it_earns_nothing(environment: str, split: str) -> None:
    dataset = load(f"families:{environment}{split}@seed=0..0")
    with intercode.make(environment, dataset=dataset) as made:
        for index in range(len(dataset.tasks)):
            made.reset(seed=0, options={"task": index})
            assert made.score().value == 0.0, made.task.id

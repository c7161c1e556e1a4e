"""Single actions that do not solve families which ask for looking.

Each is written once for all tasks of its family, by somebody who knows how they are drawn.
"""

from __future__ import annotations

import re

import pytest

import intercode

FIXED = {
    "bash/failing-check": (
        "awk -F= -v OFS== '$2 > 9999 { $2 -= 9900 } 1' service.conf > x; cat x > service.conf; "
        "rm x; sh check.sh",
        "awk -F= -v OFS== '$2 > 5000 { $2 -= 4900 } 1' service.conf > x; cat x > service.conf; "
        "rm x; sh check.sh",
    ),
    "bash/trail": (
        "grep -hE '^[a-z]+-[0-9]+$' */*-???.txt",
        "cat $(grep -hoE '[a-z]+/[a-z0-9-]+[.]txt' */*.txt) | grep -E '^[a-z]+-[0-9]+$'",
        "grep -hE '^[a-z]+-[0-9]+$' */*.txt | tail -n 1",
    ),
    "bash/unnamed-column": (
        "awk -v c=$(grep WANTED legend.txt | tr -dc 0-9) '{ n += $c } END { print n }' parcels.tsv",
    ),
    "ctf/trail-of-notes": (
        "grep -hE '^[A-Za-z0-9+/]{30,}=*$' notes/*-???? | base64 -d",
        "grep -hE '^[A-Za-z0-9+/]{30,}=*$' notes/* | tail -n 1 | base64 -d",
    ),
}
WANTED = re.compile("weight|length|height|price")
FLAG = re.compile(r"flag\{\w+\}")
ALLOWED = {"bash/unnamed-column": 0.3}
"""The share of tasks that fixed actions may solve: 0, or the bound of the family."""


@pytest.mark.sandbox
@pytest.mark.heavy
@pytest.mark.parametrize("family", FIXED)
def test_no_fixed_action_solves_a_family(family: str) -> None:
    environment, _, _ = family.partition("/")
    spec, played, solved = f"families:{family}[difficulty={{}}]@seed=0..3", 0, []
    for difficulty in (1, 5):
        with intercode.make(environment, dataset=spec.format(difficulty), recycle=True) as env:
            for seed in range(4):
                for action in FIXED[family]:
                    query, _ = env.reset(options={"task": seed})
                    if wanted := WANTED.search(query):
                        action = action.replace("WANTED", wanted[0])
                    output = env.step(action)[0]
                    flags = FLAG.findall(output)
                    reward = env.step(" ".join(["submit", *flags[:1]]))[1]
                    played += 1
                    solved += [(difficulty, seed, action)] * (reward == 1)
    assert len(solved) <= ALLOWED.get(family, 0) * played, solved

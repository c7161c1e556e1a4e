"""Whether a family is solved that was never trained on, and what that depends on: more families in
training, and a policy that points at what it read.

    python examples/learn/composition.py [--out DIR] [--seeds N] [--episodes N]

Run it again after an interruption: it goes on. `curves.py` prints the table.
"""

from __future__ import annotations

from pointers import ARMS
from runs import run_all

if __name__ == "__main__":
    run_all({arm: ("success", setting) for arm, setting in ARMS.items()}, __doc__)

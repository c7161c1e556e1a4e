"""Whether a family is solved that was never trained on: two families are held out in turn.

    python examples/learn/composition.py [--out DIR] [--seeds N] [--episodes N]

Run it again after an interruption: it goes on. `curves.py` prints the table.
"""

from __future__ import annotations

from pointers import HELD_OUT, compose
from runs import run_all

if __name__ == "__main__":
    run_all({f"without {family}": ("success", compose(family)) for family in HELD_OUT}, __doc__)

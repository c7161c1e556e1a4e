"""What is learned on two families, and what of it holds on a third that was never trained on.

    python examples/learn/families.py [--out DIR] [--seeds N] [--episodes N]

Run it again after an interruption: it goes on. `curves.py` prints the table.
"""

from __future__ import annotations

from runs import run_all
from skills import skills

if __name__ == "__main__":
    run_all({"families": ("success", skills())}, __doc__)

"""What interaction gains: the same policy with one action an episode, and with five.

    python examples/learn/single.py [--out DIR] [--seeds N] [--episodes N]

Run it again after an interruption: it goes on. `curves.py` draws the result.
"""

from __future__ import annotations

from runs import run_all
from settings import trails

if __name__ == "__main__":
    run_all({"one turn": ("final", trails(1)), "five turns": ("final", trails(5))}, __doc__)

"""Which credit learns fastest: the final reward, the change of the score in each turn, or the
comparison of forks of a live state.

    python examples/learn/credit.py [--out DIR] [--seeds N] [--episodes N]

Run it again after an interruption: it goes on. `curves.py` draws the result. Each fork that is
played to the end counts as an episode.
"""

from __future__ import annotations

from runs import run_all
from settings import trails

if __name__ == "__main__":
    run_all(
        {
            "five turns": ("final", trails(5)),
            "delta": ("delta", trails(5)),
            "fork": ("fork", trails(5)),
        },
        __doc__,
    )

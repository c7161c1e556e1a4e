"""Checks that this process may open as many files as a run needs."""

from __future__ import annotations

import sys

from intercode.core.errors import UsageError

FILES_PER_EPISODE = 30
"""Open files of this process for one live episode: up to nine for each of three sandboxes (of the
agent, of the gold, and of the next episode), and a few for a connection and a database."""
SHARED_FILES = 600
"""Further open files at most: prewarmed sandboxes, the launcher, idle connections."""


def check_open_file_limit(parallel: int) -> None:
    """Raise UsageError if the hard limit on open files is too low for ``parallel`` episodes at
    once.

    The sandboxes raise the soft limit as needed.
    """
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = parallel * FILES_PER_EPISODE + min(SHARED_FILES, parallel * FILES_PER_EPISODE)
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise UsageError(
            f"{parallel} episodes at once may need {needed} open files, and this process may open "
            f"{hard}: give --parallel {max_parallel()}, or raise the hard limit "
            f"(ulimit -Hn {needed})"
        )


def max_parallel() -> int | None:
    """Return how many episodes at once the hard limit on open files allows, None if any number."""
    if sys.platform == "win32":
        return None
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return None
    return max(1, hard // (2 * FILES_PER_EPISODE), (hard - SHARED_FILES) // FILES_PER_EPISODE)

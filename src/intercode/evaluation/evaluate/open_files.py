"""Whether this process may open as many files as a run needs."""

from __future__ import annotations

import sys

from intercode.core.errors import UsageError

FILES_PER_EPISODE = 30
"""Files of the owner's that one live episode may need: three places (the agent's, the gold's and
the next one's) of up to nine, and a few for a connection and a database."""
SHARED_FILES = 600
"""And those that do not grow with the episodes: spare places, the launcher, connections kept."""


def check_open_file_limit(parallel: int) -> None:
    """Raise UsageError where the hard limit on open files is too low for so many episodes at once.

    The soft limit is raised as far as needed by the sandboxes themselves.
    """
    if sys.platform == "win32":
        return
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    needed = parallel * FILES_PER_EPISODE + min(SHARED_FILES, parallel * FILES_PER_EPISODE)
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise UsageError(
            f"{parallel} episodes at once may need {needed} open files, and this process may open "
            f"{hard}: give --parallel {max_parallel()}, or raise the hard limit (ulimit -Hn {needed})"
        )


def max_parallel() -> int | None:
    """How many episodes at once the hard limit on open files allows; None where there is none."""
    if sys.platform == "win32":
        return None
    import resource

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard == resource.RLIM_INFINITY:
        return None
    return max(1, hard // (2 * FILES_PER_EPISODE), (hard - SHARED_FILES) // FILES_PER_EPISODE)

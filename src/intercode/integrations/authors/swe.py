"""The authors' fifth environment, which is not here."""

from __future__ import annotations

from typing import Any, NoReturn

from intercode.core.errors import UsageError


class SWEEnv:
    """Named so that scripts which import it go on working; it cannot be made.

    The authors' own never judged anything: every submission was given the reward 0.
    """

    def __init__(self, *_: Any, **__: Any) -> NoReturn:
        raise UsageError(
            "SWEEnv is not part of this package: the authors' gave every submission the reward 0; "
            "SWE-bench has a harness of its own, and tasks with a test script can be played as "
            "Harbor tasks (see docs/harbor.md)"
        )

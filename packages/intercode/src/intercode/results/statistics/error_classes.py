"""Classifies the error of an invalid action."""

from __future__ import annotations

from intercode.core.logs import lacks_code
from intercode.core.types import ActionLanguage, Step
from intercode.environments.languages.errors import OTHER, STATUS_ONLY
from intercode.results.statistics.metrics import is_refused_answer

NO_CODE = "no code"
REFUSED = "refused"
WRONG_ANSWER = "wrong answer"
TIMED_OUT = "time-out"


def error_class(step: Step, language: ActionLanguage) -> str | None:
    """Return the class of a turn's error, or None if there was none or it is unknown.

    A turn without recorded validity counts only if its observation is certainly an error of the
    language. If several classes match, the first in the language's order is returned.
    """
    if step.refused:
        return WRONG_ANSWER if is_refused_answer(step) else REFUSED
    if lacks_code(step):
        return NO_CODE
    if not step.executed:
        return None
    if step.valid is None:
        return language.class_of_error(step.observation, False)
    if step.valid:
        return None
    if step.timed_out:
        return TIMED_OUT
    found = language.class_of_error(step.observation, True)
    return found or (OTHER if step.observation.strip() else STATUS_ONLY)

"""Says which MBPP tasks show the form of their tests, and chooses the tests that they show.

The benchmark's own prompt shows all tests of a task. Here the tests are hidden, and a task whose
query does not say what they need shows one of each form.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from intercode.core.python_syntax import parse_python
from intercode.sandbox.lines import split_lines

_UNCLEAR = """
    2 4 13 15 16 22 26 31 33 39 43 44 48 50 53 60 64 65 70 73 75 77 81 83 94 99 101 106 109 110
    111 112 114 117 118 121 122 128 129 130 134 136 137 139 140 142 146 149 150 155 157 159 160
    163 171 177 178 180 182 184 186 187 202 205 207 211 217 219 229 235 237 241 243 247 254 259
    261 262 264 265 275 277 280 285 290 292 299 302 304 305 307 308 310 313 315 317 321 323 324
    328 337 342 343 349 359 367 370 374 376 380 387 390 391 393 396 400 406 407 415 417 421 431
    433 434 436 437 438 440 442 444 449 452 454 462 463 466 467 473 475 482 490 492 493 494 500
    501 519 522 523 525 527 528 530 533 534 535 537 546 552 553 558 561 570 572 575 584 586 590
    592 595 596 601 602 603 607 612 613 615 619 620 626 630 636 638 640 642 643 650 652 660 669
    677 686 691 694 696 699 701 708 709 717 719 721 722 723 737 743 746 747 749 754 755 756 757
    758 760 761 773 774 779 780 781 783 787 791 794 806 810 819 823 826 840 859 860 865 879 880
    900 906 915 916 917 920 922 927 930 944 949 950 951 963 967 969
"""
UNCLEAR_TASKS = frozenset(int(number) for number in _UNCLEAR.split())
"""The task ids of queries that, with the signature, do not say what the tests need: the kind of the
result (the length of a subsequence, or the subsequence), its fixed wording, what the arguments
mean, or an order. Found by reading each of the 974 queries beside its tests, and the benchmark's
own edits of them in its sanitized part."""


def describe_call_form(tests: Sequence[str], setup: str) -> str:
    """Return the sentence that shows the chosen tests, after the set-up code if there is any."""
    shown = [line for code in (setup, *choose_tests(tests)) for line in split_lines(code.strip())]
    return "\n".join(["Its tests have this form:", *shown])


def choose_tests(tests: Sequence[str]) -> list[str]:
    """Return the first test with each form of result.

    The form of a result is its type. It is its value for a sign of failure (-1), and for the texts
    of a task if the results of two tests are the same text, because such texts are a fixed wording.
    """
    results = [_expected_result(test) for test in tests]
    texts = [value for value in results if isinstance(value, str)]
    fixed = len(set(texts)) < len(texts)
    chosen: dict[object, str] = {}
    for test, value in zip(tests, results, strict=True):
        by_value = value == -1 or (fixed and isinstance(value, str))
        chosen.setdefault(value if by_value else type(value), test)
    return list(chosen.values())


def _expected_result(test: str) -> object:
    """Return the value that a test compares a call with; its syntax if that is no literal."""
    statement = parse_python(test.strip()).body[0]
    if isinstance(statement, ast.Assert) and isinstance(statement.test, ast.Compare):
        try:
            value: object = ast.literal_eval(statement.test.comparators[-1])
        except ValueError:
            return statement
        return value
    return statement

"""Reads the report that pytest writes with ``--junitxml``, which names tests in its own way."""

from __future__ import annotations

from xml.etree import ElementTree

_MAX_MARKS = 2_000_000
"""Tags and quotes of a report, which take more memory than their bytes."""


def read_report(report: bytes) -> dict[str, bool]:
    """Return whether each test passed, by the key that ``report_key`` gives for its id.

    An expected failure counts as passed, and a skipped test does not, as in the published code. If
    several tests have one key, all of them must pass. Raises ValueError for a report that is
    missing or broken.
    """
    if not report.strip():
        raise ValueError("pytest wrote no report: it could not start, or did not end by itself")
    if b"<!DOCTYPE" in report or b"<!ENTITY" in report or b"\0" in report:
        raise ValueError("the report of pytest declares entities, which pytest does not")
    if sum(map(report.count, (b"<", b'"', b"'"))) > _MAX_MARKS:
        raise ValueError("the report of pytest has too many tags and attributes")
    try:
        root = ElementTree.fromstring(report)
    except ElementTree.ParseError as e:
        raise ValueError(f"the report of pytest is broken: {e}") from e
    results: dict[str, bool] = {}
    for case in root.iter("testcase"):
        key = _cut(f"{case.get('classname', '')}::{case.get('name', '')}")
        results[key] = results.get(key, True) and _passed(case)
    return results


def report_key(test: str) -> str:
    """Return the key of a test in a report for its id: ``a/test_b.py::C::d[e]`` is ``a.test_b.C``
    as a class, and ``d[e]`` as a name.

    Published ids end before the first white space, so keys do as well.
    """
    address, bracket, parameters = test.partition("[")
    path, *names = address.split("::")
    classes = [path.removesuffix(".py").replace("/", "."), *names[:-1]]
    return _cut(f"{'.'.join(classes)}::{names[-1] if names else ''}{bracket}{parameters}")


def _cut(key: str) -> str:
    return key.split(maxsplit=1)[0] if key.split() else key


def _passed(case: ElementTree.Element) -> bool:
    return all(
        child.tag not in ("failure", "error", "skipped")
        or (child.tag == "skipped" and child.get("type") == "pytest.xfail")
        for child in case
    )

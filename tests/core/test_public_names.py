"""All public names of the package can be imported, and none is imported before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import intercode


@pytest.mark.parametrize("name", intercode.__all__)
def test_a_public_name_is_imported_on_use(name: str) -> None:
    assert getattr(intercode, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'pool'"):
        _ = intercode.pool  # type: ignore[attr-defined]


def test_importing_the_package_loads_no_lazy_module() -> None:
    modules = "[m for m in intercode._LAZY_IMPORTS.values() if m in sys.modules]"
    code = f"import sys, intercode; print({modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""A runtime of verifiers whose commands run in a sandbox: ``type = "intercode"``.

verifiers has a closed list of runtimes, which it reads while it is imported. Importing this package
first adds one: ``python -m intercode.integrations.verifiers eval ...`` in place of ``vf-eval ...``,
or ``import intercode.integrations.verifiers`` above ``import verifiers.v1`` in a program. Needs the
extra ``verifiers``.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec, module_from_spec
from typing import Annotated, Any, get_args

from intercode.core.errors import UsageError

__all__ = ["InterCodeConfig", "InterCodeRuntime", "InterCodeRuntimeInfo"]

_PACKAGE = "verifiers.v1"


def _import_with_runtime() -> Any:
    """Import verifiers with our runtime in its list, and return our module of the runtime.

    The package itself is executed last, because its modules copy the list.
    """
    if _PACKAGE in sys.modules:
        raise UsageError(
            f"{_PACKAGE} was imported first and has its list of runtimes already: import "
            f"{__name__} before it"
        )
    try:
        spec = find_spec(_PACKAGE)
    except ImportError as e:
        raise ImportError("this needs verifiers: pip install 'intercode-gym[verifiers]'") from e
    if spec is None or spec.loader is None:
        raise UsageError(f"the installed verifiers has no {_PACKAGE}: install verifiers>=0.4")
    package = module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    try:
        runtimes = importlib.import_module(f"{_PACKAGE}.runtimes")
        ours = importlib.import_module(f"{__name__}.runtime")
        _add_runtime(runtimes, ours)
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules[_PACKAGE]
        raise
    sys.modules["verifiers"].v1 = package  # type: ignore[attr-defined]
    return ours


def _add_runtime(runtimes: Any, ours: Any) -> None:
    from pydantic import Field

    for name, added in (
        ("RuntimeConfig", ours.InterCodeConfig),
        ("RuntimeInfo", ours.InterCodeRuntimeInfo),
    ):
        union = get_args(getattr(runtimes, name))[0]
        setattr(runtimes, name, Annotated[union | added, Field(discriminator="type")])
    find_class = runtimes._runtime_cls

    def runtime_class(config: Any) -> Any:
        is_ours = isinstance(config, ours.InterCodeConfig)
        return ours.InterCodeRuntime if is_ours else find_class(config)

    runtimes._runtime_cls = runtime_class


_ours = _import_with_runtime()
InterCodeConfig = _ours.InterCodeConfig
InterCodeRuntime = _ours.InterCodeRuntime
InterCodeRuntimeInfo = _ours.InterCodeRuntimeInfo

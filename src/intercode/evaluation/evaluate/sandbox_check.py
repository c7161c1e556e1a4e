"""Finds out before a run whether this machine can open its sandboxes, and says what would help."""

from __future__ import annotations

from intercode.core.errors import SandboxError, SandboxUnavailableError
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.evaluate.plan import Plan
from intercode.sandbox import SandboxSpec, describe_choice, open_sandbox
from intercode.sandbox.diagnostics import diagnose


def require_sandboxes(plan: Plan) -> str:
    """Open and close one sandbox of a plan's image, if its environment uses sandboxes.

    Returns what was chosen for ``auto``, to be printed; empty if nothing was. Without this, each
    episode on a machine without sandboxes would be recorded as an error. Raises
    SandboxUnavailableError with what would help.
    """
    with plan.make_env() as env:
        if not isinstance(env, SandboxedEnv):
            return ""
        spec = SandboxSpec(env.image)
        try:
            open_sandbox(spec, env.sandbox_kind).close()
        except SandboxError as e:
            raise with_remedy(e) from e
        kind = env.sandbox_kind
    return describe_choice(kind)


def with_remedy(error: SandboxError) -> SandboxUnavailableError:
    """Return an error with the first remedy that `intercode doctor` names for this machine; one for
    the cache comes first, because other checks need the cache."""
    missing = [f for f in diagnose() if f.needed and not f.ok and f.fix]
    if not missing:
        return SandboxUnavailableError(f"{error}; `intercode doctor` describes this machine")
    first = min(missing, key=lambda f: not f.name.startswith("cache"))
    text = str(error) if first.fix in str(error) else f"{error}; {first.name}: {first.fix}"
    return SandboxUnavailableError(text)

"""InterCode: interactive coding with execution feedback.

Code is the action, execution feedback is the observation::

    import intercode

    env = intercode.make("bash")
    query, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("ls")

Importing this package registers ``intercode/Bash-v1`` and the like with Gymnasium, and does nothing
else. ``intercode.make_vec("bash", num_envs=64)`` steps many environments in parallel,
``intercode.Pool`` keeps hundreds of episodes live for a trainer,
``intercode.evaluate("starter", "try-again", model=...)`` runs an agent on a dataset,
``intercode.load_run(directory)`` reads the results, and
``intercode.Sandbox("host")`` is a sandbox without a task. Every package lists its other
public names in ``__all__``, such as ``intercode.core``; names in no such list are private.
"""

# ruff: noqa: E402  # what follows the function must not be imported before it has run
import os
import sys


def _leave_working_directory() -> None:
    """Take the working directory, which holds data, from the search path of the program.

    ``python -m`` has put it there, or an empty entry in PYTHONPATH. If it holds this package, it is
    searched last. Scripts that import this package keep their search path.
    """
    by_module = sys.argv[:1] == ["-m"]  # its name replaces that once it is found
    if not by_module and os.path.splitext(os.path.basename(sys.argv[0]))[0] != "intercode":
        return
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return
    variable = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH", "")
    entries = variable.split(os.pathsep)
    if by_module and not sys.flags.safe_path and sys.path[:1] == [here]:
        del sys.path[0]
    if variable and here not in map(os.path.abspath, filter(None, entries)) and "" in entries:
        sys.path[:] = [entry for entry in sys.path if entry not in ("", here)]
    if here == os.path.dirname(os.path.dirname(__file__)) and here not in sys.path:
        sys.path.append(here)


if sys.argv:
    _leave_working_directory()

from typing import TYPE_CHECKING

from intercode.core.packages import directories_with_golds
from intercode.core.version import __version__
from intercode.environments import make, register
from intercode_sandbox.hidden_files import hide_package
from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.core.errors import InfrastructureError
    from intercode.environments.base.pool import Pool
    from intercode.environments.base.vector import make_vec
    from intercode.evaluation.evaluate.run import evaluate, evaluate_async
    from intercode.results.run import load_run
    from intercode_sandbox import Sandbox

__all__ = [
    "InfrastructureError",
    "Pool",
    "Sandbox",
    "__version__",
    "evaluate",
    "evaluate_async",
    "load_run",
    "make",
    "make_vec",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "InfrastructureError": ".core.errors",
        "Pool": ".environments.base.pool",
        "Sandbox": "intercode_sandbox",
        "evaluate": ".evaluation.evaluate.run",
        "evaluate_async": ".evaluation.evaluate.run",
        "load_run": ".results.run",
        "make_vec": ".environments.base.vector",
    },
)

for _directory in directories_with_golds():
    hide_package(_directory)
register()

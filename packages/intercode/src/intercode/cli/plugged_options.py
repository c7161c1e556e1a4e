"""Options of commands whose work another package does."""

from __future__ import annotations

from intercode.core.packages import LAB
from intercode_sandbox.registry import Registry

OPTIONS = Registry(
    "option",
    {
        "check.audit": LAB,
        "check.contamination": LAB,
        "check.draw": LAB,
        "check.labels": LAB,
        "check.variants": LAB,
        "run.variants": LAB,
        "view.label": LAB,
    },
    group="intercode.options",
)
"""Functions by command and option:

- ``check.contamination(args)`` and ``check.draw(args, dataset)`` print tables unless ``args.json``
  is set. They return the report as JSON types, and whether all tasks are sound.
- ``check.audit(args, dataset)`` and ``check.labels(args)`` do the same; what they return second is
  whether everything could be audited or graded.
- ``export.FORMAT(source, out, **options)`` writes another format, and returns the exit status.
- ``check.variants(args, dataset)`` returns the report as JSON types, and tables.
- ``run.variants(run, replay_options, count, progress)`` of ``replay`` returns a report with
  ``tables()`` and ``write(directory)``, which returns the file.
- ``view.label(library, path)`` returns a ``LabelPage``.

``args``: the arguments of the command.
"""

"""Records golden outputs of InterCode and compares a later version with them.

    python tests/frozen record DIR [--only NAME...] [--jobs 2] [--rounds 2]
    python tests/frozen compare DIR [--only NAME...] [--jobs 2] [--wording]
    python tests/frozen list              names of the items

The interpreter that runs this package is the version under test; set ``PYTHONPATH`` to the ``src``
of another checkout to test that one. Everything goes through ``python -m intercode`` and a few
documented Python functions, so the package works with any version that has these commands.

An *item* is a command or a group of commands. Its output has two layers. ``exact`` holds figures,
rewards, observations, identifiers, file names and exit statuses; a difference is printed and makes
the exit status 1. ``wording`` holds messages, help and captions; differences are only counted.

``record`` runs every item ``--rounds`` times. Values that differ between rounds are stored as
volatile and never compared. Values that depend on the time, the process list, the load and the
like are ``soft``: they are not compared either. ``varying.txt`` in DIR lists both; ``record`` ends
with 1 if they are more than 2 % of all values.

Besides commands and the files that they write, items hold the bytes of every message that agents
send to an endpoint (``messages.py``), the results of sandboxes in every tier, and the classes of
errors (``sandboxes.py``), episodes through Inspect, TRL, verifiers and Harbor (``frameworks.py``),
and what the records of all shared logs and runs mean (``episodes.py``). The frameworks that need
virtual environments of their own are found by INTERCODE_VERIFIERS and INTERCODE_HARBOR, as in the
tests; without them, and without an engine of containers, that is the recorded value.

A change that renames flags, settings, keys or values on purpose adds rows to ``renames.py``. Both
sides of a comparison get the new names, so one recording serves before and after the renaming.
"""

"""Sessions for the languages in ``core/languages.py``: live interpreters (REPL) and programs."""

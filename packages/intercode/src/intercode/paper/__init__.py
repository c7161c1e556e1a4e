"""The package of the paper's authors: profile ``original``, their classes, logs and tables.

Nothing else imports this package. Its parts are found by the entry points in pyproject.toml.
"""

__all__ = ["PROFILE"]

PROFILE = "original"
"""The profile that does what the authors' code does.

>>> import intercode
>>> from intercode.paper import PROFILE
>>> with intercode.make("bash", profile=PROFILE) as env:
...     env.settings.profile
'original'
"""

"""The code of the launcher, of interpreted supervisors, and of PID 1 of a sandbox.

A fresh interpreter with an empty environment loads this package as the top-level package
``runtime``. It imports only the standard library and itself, so that a sandbox takes little memory
and holds nothing of the owner's process.
"""

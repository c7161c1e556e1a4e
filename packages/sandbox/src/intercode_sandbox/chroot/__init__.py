"""The back end for root of a container that may neither mount nor make namespaces: a root directory
and two user ids for each sandbox.

Its C part, ``supervisor/c/chroot``, says how commands are confined.
"""

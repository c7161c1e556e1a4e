"""The default back end: Linux user namespaces and an overlay file system, without a daemon or root.

The modules here run in the owner's process; ``supervisor.runtime`` holds what runs in the launcher
and the supervisors.
"""

"""The default back end: Linux user namespaces and an overlay file system, no daemon, no root.

``launcher`` and ``sandbox`` run in the owner's process; ``box`` on the far side.
"""

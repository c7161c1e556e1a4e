"""What runs on the far side: the launcher and, one per sandbox, its keeper.

This package is loaded by a fresh interpreter with an empty environment. It uses the standard
library only and knows nothing of the rest of intercode, so that a sandbox costs little memory
and nothing of the owner's process can be found in it.
"""

"""Code that runs in a bare interpreter: the launcher, image builds and checks of the kernel.

A fresh interpreter with an empty environment loads this package as the top-level package
``runtime``. It imports only the standard library and itself, so that a launcher takes little memory
and holds nothing of the owner's process. The supervisor itself is the C program in ../c. The owner
imports ``protocol``, ``seccomp`` and ``cgroups`` too.
"""

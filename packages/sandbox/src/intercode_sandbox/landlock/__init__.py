"""The back end for machines that allow neither root nor namespaces: a directory of the machine, in
which Landlock confines the commands of their own user.

Its C part is ``supervisor/c/landlock``. Programs see the sandbox's files below that directory,
which ``$SANDBOX_ROOT`` names.
"""

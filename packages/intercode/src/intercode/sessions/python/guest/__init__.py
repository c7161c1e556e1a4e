"""Code that runs in the sandbox, in the image's own Python (3.7 or later); standard library only.

The session reads these files and hands them to the interpreter as text. Nothing imports them there.
"""

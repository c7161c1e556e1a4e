"""What runs inside a sandbox, in the image's own Python (3.7 or later): the standard library only.

The files are read by the session and handed to the interpreter as text; nothing imports them there.
"""

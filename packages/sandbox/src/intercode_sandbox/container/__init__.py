"""The back end of Docker and Podman: a sandbox is a container whose PID 1 is the supervisor.

The engine isolates the container and limits its resources. The supervisor provides everything else,
with the same protocol as in namespace sandboxes. This needs a local engine and a C compiler.
"""

"""The back end of Docker and Podman: a box is a container, whose PID 1 is the keeper of ours.

The engine gives the isolation and the bounds; the keeper gives everything else, in the same words
as in a namespace box (see kept.py). An engine on this machine and a C compiler are needed.
"""

"""The sandbox as users have it: ``Sandbox``, its results, processes and snapshots.

A sandbox of a back end (``contract.py``) does the work. These modules add what a program wants of
it: separate and streamed output, time limits, trees of files, and snapshots in files.
"""

"""Runs statements that may take long in a process that can be killed.

``bounded`` tells which statements the owner executes itself, ``session`` passes the others to a
worker, ``process`` starts, asks and kills workers, and ``service`` is what a worker executes.
"""

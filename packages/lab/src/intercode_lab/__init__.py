"""A plug-in: families and variants of tasks, audits, contamination, validity and labels.

It adds commands, options, a dataset, a reward and checks by its entry points. Nothing has to be
imported.
"""

"""Code that all starter suites share: it writes the files of tasks and loads the tasks."""

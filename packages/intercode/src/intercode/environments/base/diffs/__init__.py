"""Changes of files: against the initial files of a task, and from turn to turn for records."""

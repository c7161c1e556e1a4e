"""What the starter suites of all environments share: laying out files, and loading the tasks."""

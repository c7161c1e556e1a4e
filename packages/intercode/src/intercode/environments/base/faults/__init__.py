"""What an environment does about exceptions in the path of an action."""

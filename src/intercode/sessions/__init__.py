"""A live interpreter in a sandbox: one bash for an episode, or a new one for every action."""

"""Interactive play: a human plays tasks, alone or together with an agent."""

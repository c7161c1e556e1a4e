"""Python sessions: an interpreter in the sandbox that can be forked, interrupted and migrated."""

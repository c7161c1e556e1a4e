"""A network of a sandbox that reaches named hosts only: the rules, and what carries them out."""

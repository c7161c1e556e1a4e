"""InterCode as an OpenEnv environment server. Needs the extra ``openenv``."""

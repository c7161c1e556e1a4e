"""InterCode as an OpenEnv environment server, and a client with Gymnasium's interface. Needs the
extra ``openenv``."""

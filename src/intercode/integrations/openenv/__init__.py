"""InterCode as an OpenEnv environment server, and a client that makes a server's environment one of
ours again. Needs the extra ``openenv``."""

mkdir -p /logs/agent /logs/artifacts /logs/verifier

"""The protocols of model providers, one module each."""

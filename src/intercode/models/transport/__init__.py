"""Requests to model endpoints: HTTP, retries, concurrency limit and the shared event loop."""

"""Requests to model endpoints: HTTP, retries and the concurrency limit."""

"""The Capture-the-Flag environment."""

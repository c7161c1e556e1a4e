"""Builds images and layers in sandboxes, one cached step at a time."""

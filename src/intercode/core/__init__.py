"""Types, errors, registries, settings and records that every other package uses."""

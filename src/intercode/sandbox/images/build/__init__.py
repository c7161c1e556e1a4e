"""Making images and layers: recipes here, set-up scripts in ``setup``."""

"""Many episodes: ``evaluate`` plays them, ``replay`` plays them again, ``check`` proves tasks."""

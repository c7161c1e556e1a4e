"""What imports may load: a user's own modules by their location, and nothing beside data."""

"""Records in, pictures out; nothing here runs an algorithm."""

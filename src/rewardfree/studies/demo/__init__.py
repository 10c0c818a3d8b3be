"""The library at work: where to look, and one exploration that serves several rewards."""

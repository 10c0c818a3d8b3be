"""Settings that all tests share."""

from hypothesis import settings

# A slow machine must not turn a right answer into a failure; the examples are the same on every run.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeatable")

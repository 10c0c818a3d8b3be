"""The experiments that are published with this package: what each runs, and its tables and figures."""

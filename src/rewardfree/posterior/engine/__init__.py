"""How many posteriors on one finite set are computed: backends, factors, prior tables, replayed rounds."""

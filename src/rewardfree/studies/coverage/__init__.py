"""How wide confidence intervals have to be, and bounds beside the gap."""

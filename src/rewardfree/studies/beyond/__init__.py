"""Every explorer, model and planner on worlds where planning matters, at equal environment steps."""

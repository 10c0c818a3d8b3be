"""The paper's figures, its table and its claims."""

"""How to choose where to look next."""

from rewardfree.strategies.generative import query_plan

__all__ = ["query_plan"]

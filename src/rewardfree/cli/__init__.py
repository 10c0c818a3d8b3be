"""The `rewardfree` command: parse, one library call, print."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a mistake in what was typed ends in one line, not in a traceback."""
    from rewardfree.cli.app import app

    try:
        app()
    except (ValueError, OSError, MemoryError) as error:
        sys.stderr.write(f"rewardfree: {error}\n")
        sys.exit(2)

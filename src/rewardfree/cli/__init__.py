"""The `rewardfree` command: parse, one library call, print."""

import sys


def main() -> None:
    """Run the command line; a mistake in what was typed ends in one line, not in a traceback."""
    try:
        from rewardfree.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.stderr.write("rewardfree: interrupted\n")
        sys.exit(130)
    except (ValueError, OSError, MemoryError) as error:
        sys.stderr.write(f"rewardfree: {error}\n")
        sys.exit(2)

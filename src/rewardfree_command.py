"""The `rewardfree` command. It is not in the package: the import of that takes a while, and is quiet too."""

import signal


def main() -> None:
    """Import the command line and run it. Before and after that, Ctrl-C ends the process without a word."""
    handler = signal.getsignal(signal.SIGINT)
    quiet = handler is not signal.SIG_IGN  # as a shell wants it in the background
    if quiet:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    import rewardfree.cli.app

    signal.signal(signal.SIGINT, handler)
    try:
        rewardfree.cli.main()
    finally:
        if quiet:
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python would print what it was doing at its end

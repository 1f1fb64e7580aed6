"""The command, as a script and as ``python -m thereexists``. Ctrl-C ends it in a word, while it is imported too."""

import sys


def main() -> None:
    try:
        from thereexists.cli import main as run
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

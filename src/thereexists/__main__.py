"""The command, as a script and as ``python -m thereexists``. Ctrl-C ends it in a word, while it is imported too.

Python processes that libraries of ours start meanwhile (compilers, trackers of resources) do not import from the folder
that they start in: it may be a stranger's.
"""

import os
import sys


def main() -> None:
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        from thereexists.cli import main as run
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()

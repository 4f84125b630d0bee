"""`python -m tracelane` is the command `tracelane`."""

import sys

from tracelane.tui.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""Runs the command ``intercode`` as ``python -m intercode``."""

import sys

from intercode.cli import main

if __name__ == "__main__":
    sys.exit(main())

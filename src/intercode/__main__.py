"""``python -m intercode``: the same as the command ``intercode``."""

import sys

from intercode.cli import main

if __name__ == "__main__":
    sys.exit(main())

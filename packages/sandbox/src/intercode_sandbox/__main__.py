"""``python -m intercode_sandbox``: the command ``intercode-sandbox``."""

from __future__ import annotations

import sys

from intercode_sandbox.command import main

if __name__ == "__main__":
    sys.exit(main())

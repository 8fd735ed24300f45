"""Runs the command line: ``python -m fastmmc``."""

import sys

from fastmmc.cli import main

if __name__ == "__main__":
    sys.exit(main())

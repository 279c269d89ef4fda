"""Entry point of `python -m heedful`, which is the same as the command `heedful`."""

import sys

from heedful.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

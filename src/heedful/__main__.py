"""`python -m heedful` is the command `heedful`."""

import sys

from heedful.cli.main import main

if __name__ == "__main__":
    sys.exit(main())

"""Entry point of `python -m heedful`, which is the same as the command `heedful`."""

# The module behind `signal`, because the enums of `signal` take 5 ms in which Ctrl-C would print a traceback.
import _signal as signal  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
import os
import sys


def run() -> int:
    """Run the command line, quiet even if Ctrl-C comes while modules are imported."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:  # and not ignored, as in a background job
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Pydantic would look for plugins in all installed packages: 15 ms of every command, and we use none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from heedful.cli.main import main

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return main()


if __name__ == "__main__":
    sys.exit(run())

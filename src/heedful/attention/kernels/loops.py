"""Whether loops that Numba compiles can run here."""

import importlib
from functools import cache


@cache
def loops_problem() -> str | None:
    """Say why compiled loops cannot run.

    Returns:
        The reason, or None where they can.

    Cost: imports Numba, 0.3 s once.
    """
    try:
        numba = importlib.import_module("numba")
    except ImportError as error:
        return f"needs Numba: {error}"
    return "NUMBA_DISABLE_JIT is set" if numba.config.DISABLE_JIT else None

"""What all tests share: Hypothesis without a stopwatch, and the corpora beside the project, where there are any."""

from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure; examples that take too long show in `pytest --durations`.
settings.register_profile("heedful", deadline=None)
settings.load_profile("heedful")

CORPORA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora; a test that asks for it is skipped where there is none."""
    if not CORPORA.is_dir():
        pytest.skip(f"needs the corpora in ../shared/data, and {CORPORA} is no folder")
    return CORPORA

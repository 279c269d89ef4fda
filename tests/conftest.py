"""Shared setup of all tests: Hypothesis without a deadline, Triton's interpreter, the corpora beside the project."""

import gc
import importlib.util
import os
import random
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import jaxtyping
import numpy as np
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

from tests import shapes
from tests.recorded import keep_graphs
from tests.thorough import mark_left_out

if TYPE_CHECKING:
    from tests.cli.conftest import Trained
    from tests.serving.task_models import TaskModels

shapes.install()  # before anything of heedful is imported

# The last bits of results depend on the number of threads. Where it is set, it does not fall beside busy programs.
os.environ.setdefault("OMP_NUM_THREADS", str(min(2, os.cpu_count() or 1)))

# A slow machine is no failure; examples that take too long show in `pytest --durations`.
settings.register_profile("heedful", deadline=None)
settings.register_profile("gate", deadline=None, derandomize=True)
settings.load_profile("heedful")

# Programs in Triton are interpreted where Triton is and no device: their tests, and the contracts of attention, then
# run over them. Triton reads this when it is imported, and its interpreter does not know NumPy 2.4.
if importlib.util.find_spec("triton") and not Path("/dev/nvidiactl").exists():
    if np.lib.NumpyVersion(np.__version__) < "2.4.0":
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples where there may be some: a module of tests would be imported a second time for its own."""
    collectors = yield
    is_test = file_path.name.startswith("test_")
    return [each for each in collectors if not (is_test and isinstance(each, DoctestModule))]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what the gate leaves out, before `-m` selects."""
    mark_left_out(items)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, which otherwise takes an eighth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


CORPORA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(autouse=True)
def seeded_torch() -> None:
    """Draw PyTorch's seed from Python's generator, which pytest-randomly seeds, so that its seed tells all of a run."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(random.getrandbits(62))


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what all processes of one run share."""
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "shared"
    shared.mkdir(exist_ok=True)
    return shared


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk() -> Generator[None]:
    """Write without waiting until the disk has it, which matters to no test; what is asked for is still seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture(autouse=True)
def recorded_once(shared_folder: Path) -> None:
    """Record each graph of a model once, however many tests export it."""
    keep_graphs(shared_folder)


@pytest.fixture(autouse=True)
def unchecked_shapes(request: pytest.FixtureRequest) -> Generator[None]:
    """Leave shapes unchecked where code is compiled, which the checks would break, or shapes are wrong on purpose."""
    is_unchecked = any(request.node.get_closest_marker(name) for name in ("compiled", "wrong_shapes"))
    jaxtyping.config.update("jaxtyping_disable", is_unchecked)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real corpora; a test that asks for it is skipped where there is none."""
    if not CORPORA.is_dir():
        pytest.skip(f"needs the corpora in ../shared/data, and {CORPORA} is no folder")
    return CORPORA


@pytest.fixture(scope="session")
def task_models(tmp_path_factory: pytest.TempPathFactory) -> "TaskModels":
    """Small models of every task besides translation, shared by all tests of a process."""
    from tests.serving.task_models import train_task_models

    return train_task_models(tmp_path_factory.mktemp("task_models"))


@pytest.fixture(scope="session")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model from German to English sentences in pieces, shared by all tests of a process."""
    from tests.serving.sentences import train_sentences

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        return train_sentences(tmp_path_factory.mktemp("sentences"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> "Trained":
    """A tiny trained model, shared by all tests of a process."""
    from tests.cli.conftest import Trained

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        made = Trained(tmp_path_factory.mktemp("trained"))
    assert made.done.code == 0, made.done.err
    return made

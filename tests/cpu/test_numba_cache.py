"""Disk cache of kernels: never the code of other sources, other settings, another kernel or a damaged file."""

import importlib
import math
import os
import random
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.cpu import numba_cache
from heedful.cpu.numba_cache import cached_njit, examine, source_digest
from tests.cpu import kernel_package

numba = pytest.importorskip("numba")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of the cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "heedful"


def doubled(number: float) -> float:
    return 2.0 * number


def calls() -> Any:
    """A kernel as a new process has it."""
    kernel = cached_njit()(doubled)
    assert kernel(4.0) == 8.0
    return sum(kernel.stats.cache_hits.values())


def test_a_kernel_is_compiled_once(folder: Path):
    assert [calls(), calls()] == [0, 1]
    assert [(each.folder, each.num_files, each.num_damaged) for each in examine()] == [(folder, 1, 0)]


@pytest.mark.parametrize(("decorator", "is_right"), [(kernel_package.OURS, True), (kernel_package.NUMBAS, False)])
def test_a_change_in_what_is_inlined_compiles_again(tmp_path: Path, decorator: dict[str, str], is_right: bool):
    """Numba's own cache fails this test, by which it is seen to be one."""
    kernel_package.make(tmp_path, 3, decorator)
    assert kernel_package.call(tmp_path, "float64") == ([135.0], 0)
    kernel_package.make(tmp_path, 5, decorator)
    results, num_hits = kernel_package.call(tmp_path, "float64")
    assert (results == [225.0]) == is_right
    assert num_hits == (0 if is_right else 1)


def test_code_that_changed_after_it_was_imported_is_not_kept(tmp_path: Path):
    """The digest is of the new source, the code in memory of the old one."""
    kernel_package.make(tmp_path, 3)
    path = tmp_path / "toykernels/constants.py"
    change = f"import toykernels.inner; open({str(path)!r}, 'w').write('WEIGHT = 5')"
    assert kernel_package.end(kernel_package.start(tmp_path, "float64", before=change)) == ([135.0], 0)
    assert kernel_package.call(tmp_path, "float64") == ([225.0], 0)
    assert kernel_package.call(tmp_path, "float64") == ([225.0], 1)


def test_processes_that_start_together_share_kernels(tmp_path: Path):
    kernel_package.make(tmp_path)
    started = [kernel_package.start(tmp_path, *dtypes) for dtypes in (("float32", "float64"), ("float64", "float32"))]
    found = [kernel_package.end(process) for process in started]
    assert [results for results, _ in found] == [[135.0] * 2] * 2
    assert len(kernel_package.kernels(tmp_path)) == 2
    assert kernel_package.call(tmp_path, "float32", "float64") == ([135.0] * 2, 2)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The toy package, imported."""
    monkeypatch.setattr(numba_cache, "IMPORTED_AT", math.inf)  # it was written later
    kernel_package.make(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("toykernels.kernel")
    yield tmp_path / "toykernels"
    for name in [name for name in sys.modules if name.startswith("toykernels")]:
        del sys.modules[name]
    source_digest.cache_clear()


def test_every_source_below_a_kernel_counts(package: Path):
    digests = {source_digest("toykernels.kernel")}
    for number, name in enumerate(("kernel.py", "inner.py", "constants.py")):
        path = package / name
        path.write_bytes(path.read_bytes() + b"\n# changed\n")
        source_digest.cache_clear()
        digests.add(source_digest("toykernels.kernel"))
        assert len(digests) == number + 2, name


def test_all_modules_of_a_kernel_are_followed():
    importlib.import_module("heedful.attention.kernels.distance.compile")
    before = source_digest("heedful.attention.kernels.distance.numba_kernels")
    name = "heedful.attention.kernels.distance.arrays"
    assert before
    source_digest.cache_clear()
    module = sys.modules[name]
    path, module.__file__ = module.__file__, __file__
    try:
        assert source_digest("heedful.attention.kernels.distance.numba_kernels") != before
    finally:
        module.__file__ = path
        source_digest.cache_clear()


def test_a_damaged_file_is_compiled_again(folder: Path):
    calls()
    (path,) = folder.glob("*.kernel")
    whole = path.read_bytes()
    generator = random.Random(1)
    damaged = [b"", whole[:31], whole[:32], whole[:-1], whole + b"\0", whole[len(whole) // 2 :]]
    for _ in range(200):
        place, bit = generator.randrange(len(whole)), 1 << generator.randrange(8)
        damaged.append(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
    for number, content in enumerate(damaged):
        path.write_bytes(content)
        assert numba_cache._read(path) is None
        if number % 50 == 0:
            assert [each.num_damaged for each in examine()] == [1]
            assert [calls(), calls()] == [0, 1]
    # Whole, but of another kernel.
    other = path.with_name(path.name.replace("doubled", "trebled"))
    other.write_bytes(whole)
    assert numba_cache._read(other) is None


@pytest.mark.parametrize("setting", ["BOUNDSCHECK", "CPU_NAME", "OPT"])
def test_a_setting_of_numba_has_kernels_of_its_own(folder: Path, monkeypatch: pytest.MonkeyPatch, setting: str):
    calls()
    with monkeypatch.context() as patch:
        other = "2" if setting != "BOUNDSCHECK" else 0 if numba.core.config.BOUNDSCHECK else 1
        patch.setattr(numba.core.config, setting, other)
        kernel = cached_njit()(doubled)
        assert kernel._cache.find((numba.float64,)) is None
    assert calls() == 1


def test_another_processor_and_other_flags_have_kernels_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch):
    calls()
    signature = (numba.float64,)
    kernel = cached_njit()(doubled)
    assert kernel._cache.find(signature) is not None
    assert cached_njit("contract")(doubled)._cache.find(signature) is None
    monkeypatch.setattr(type(kernel.targetctx.codegen()), "magic_tuple", lambda codegen: ("triple", "CPU", "features"))
    assert kernel._cache.find(signature) is None


@pytest.mark.parametrize("name", ["numba", "llvmlite", "numpy"])
def test_two_versions_share_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    calls()
    with monkeypatch.context() as patch:
        patch.setattr(f"{name}.__version__", "999.0")
        assert [calls(), calls()] == [0, 1]
    assert calls() == 1
    assert len([*folder.glob("*.kernel")]) == 2


def test_only_the_newest_files_of_a_kernel_are_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(numba_cache, "NUM_KEPT", 2)
    for content in (b"1", b"2", b"3", b"4"):
        numba_cache._write(f"doubled-a-{content.decode()}.kernel", content)
        numba_cache._write(f"trebled-a-{content.decode()}.kernel", content)
    assert len([*folder.glob("doubled*")]) == len([*folder.glob("trebled*")]) == 2
    assert (folder / "doubled-a-4.kernel").exists()


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "file"
    file.write_bytes(b"")
    monkeypatch.setattr(numba_cache, "folders", lambda: [file / "below", tmp_path / "second"])
    assert [calls(), calls()] == [0, 1]
    (tmp_path / "first").mkdir()
    monkeypatch.setattr(numba_cache, "folders", lambda: [tmp_path / "first", tmp_path / "second"])
    assert calls() == 1  # a folder that others filled is read
    monkeypatch.setattr(numba_cache, "folders", list)
    assert [calls(), calls()] == [0, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no modes there")
def test_a_folder_that_others_can_write_to_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """What is in it runs: another user of the machine could have put it there."""
    calls()
    for mode in (0o775, 0o757, 0o777):
        folder.chmod(mode)
        assert [calls(), calls()] == [0, 0]
        assert [each.refusal for each in examine()] == ["others can write to it"]
    assert len([*folder.glob("*.kernel")]) == 1, "nothing is written there"
    folder.chmod(0o755)
    assert calls() == 1
    assert {0, os.geteuid()} <= numba_cache._owners()
    monkeypatch.setattr(numba_cache, "_owners", frozenset)
    assert [calls(), calls()] == [0, 0]
    assert [each.refusal for each in examine()] == ["it belongs to another user"]


def test_a_folder_is_made_for_the_user_alone(folder: Path):
    before = os.umask(0o002)
    try:
        calls()
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o022 == 0


def test_a_full_disk_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch):
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        write(path, content[: len(content) // 2])
        raise OSError(28, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        assert [calls(), calls()] == [0, 0]
    assert {path.name for path in folder.iterdir()} <= {"compiling.lock"}
    assert [calls(), calls()] == [0, 1]


def test_whoever_compiles_too_long_is_not_waited_for(folder: Path, monkeypatch: pytest.MonkeyPatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(numba_cache, "LOCK_SECONDS", 0.05)
    folder.mkdir(parents=True)
    with (folder / "compiling.lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert [calls(), calls()] == [0, 1]


def test_others_wait_until_a_kernel_is_compiled_and_written(folder: Path, monkeypatch: pytest.MonkeyPatch):
    fcntl = pytest.importorskip("fcntl")
    write, written = numba_cache._write, list[str]()

    def noted(name: str, content: bytes) -> None:
        with (folder / "compiling.lock").open("rb") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write(name, content)
        written.append(name)

    monkeypatch.setattr(numba_cache, "_write", noted)
    assert [calls(), calls()] == [0, 1]
    assert len(written) == 1


def test_a_kernel_that_cannot_be_compiled_frees_the_lock(folder: Path):
    kernel = cached_njit()(doubled)
    with pytest.raises(numba.core.errors.TypingError):
        kernel("text")
    assert numba_cache._COMPILING._depth == 0
    assert kernel(np.float32(2.0)) == 4.0

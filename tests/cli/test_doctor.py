import sys
import warnings
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from heedful import __version__
from heedful.cli.doctor import _is_older, _package
from heedful.cpu import numba_cache
from heedful.errors import install_command
from heedful.models import devices
from tests.cli.command import heedful


def test_what_is_said():
    done = heedful("doctor")
    assert (done.code, done.err) == (0, "")
    said = [line.split("  ", maxsplit=1)[0] for line in done.out.split("\n")]
    for name in ("heedful", "Python", "numpy", "sentencepiece", "torch (train)", "onnxruntime (onnx)", "processor"):
        assert name in said, name
    for name in (
        "threads",
        "quota",
        "other programs",
        "waiting",
        "memory",
        "disk",
        "CUDA devices",
        "trains in",
        "compiled kernels",
    ):
        assert name in said, name
    assert __version__ in done.out
    assert metadata.version("numpy") in done.out
    assert "pytest" not in done.out, "tools of developers are nobody's concern"
    assert "1 by OMP_NUM_THREADS" in done.out


def test_damaged_kernels_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert "none yet\n" in heedful("doctor").out
    folder = tmp_path / "heedful"
    folder.mkdir(mode=0o755)
    numba_cache._write("scores-1-1.kernel", b"whole")
    assert f"1 in {folder}, 0.0 MB\n" in heedful("doctor").out
    (folder / "scores-1-2.kernel").write_bytes(b"cut")
    assert f"2 in {folder}, 0.0 MB; 1 damaged, compiled again when needed\n" in heedful("doctor").out
    if sys.platform != "win32":
        folder.chmod(0o777)
        assert f"{folder} is not used: others can write to it\n" in heedful("doctor").out


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    done = heedful("doctor")
    assert done.code == 0
    assert "PyTorch" in done.out
    assert f"missing: {install_command('train')}; models cannot be trained" in done.out


@pytest.mark.parametrize(
    ("requirement", "row"),
    [
        ("nowhere-package>=2", ("nowhere-package", f"missing: {install_command()}")),
        ("nowhere.package>=2.1; extra == 'gpu'", ("nowhere.package (gpu)", f"missing: {install_command('gpu')}")),
        ("ray[data]>=999999; extra == 'dev'", None),
        ("numpy", ("numpy", metadata.version("numpy"))),
        (
            'numpy>=999; extra == "train"',
            ("numpy (train)", f"{metadata.version('numpy')}, older than 999: {install_command('train')}"),
        ),
        (
            "nothing>=3.5; sys_platform == 'linux' and extra == 'gpu'",
            ("nothing (gpu)", f"missing: {install_command('gpu')}"),
        ),
    ],
)
def test_requirements(requirement: str, row: tuple[str, str] | None):
    assert _package(requirement) == row


@pytest.mark.parametrize(
    ("version", "floor", "expected"),
    [("2.9", "2.11", True), ("2.11.0+cpu", "2.11", False), ("3.0", "2.11", False), ("2.11", "2.11.1", True)],
)
def test_older(version: str, floor: str, expected: bool):
    assert _is_older(version, floor) == expected


def cuda_row() -> str:
    """Row of the CUDA devices."""
    (row,) = [line for line in heedful("doctor").out.split("\n") if line.startswith("CUDA devices")]
    return row.removeprefix("CUDA devices").strip()


def test_why_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch):
    def too_old() -> bool:
        warnings.warn(
            "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update "
            "your GPU driver by downloading and installing a new version",
            stacklevel=1,
        )
        return False

    monkeypatch.setattr(devices, "_warned", [])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cuda_row() == "none"
    monkeypatch.setattr(torch.cuda, "is_available", too_old)
    assert cuda_row() == "none: The NVIDIA driver on your system is too old (found version 11040)"
    for value in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
        assert cuda_row() == f"none: CUDA_VISIBLE_DEVICES={value} hides them"


@pytest.mark.parametrize("has_bfloat16", [True, False])
def test_a_gpu_is_described(has_bfloat16: bool, monkeypatch: pytest.MonkeyPatch):
    facts = SimpleNamespace(name="Tesla T4", major=7, minor=5, total_memory=15_800_000_000)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: facts)
    monkeypatch.setattr(torch.cuda, "device", lambda index: nullcontext())
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_bfloat16)
    assert cuda_row() == f"Tesla T4, 7.5, 16 GB, {'' if has_bfloat16 else 'no '}bfloat16"
    assert "the faster device for the corpus: --device auto" in heedful("doctor").out

"""Device of a training: the faster one, and what is said about it."""

import warnings
from pathlib import Path

import pytest
import torch

from heedful.cli.options import choose_device, choose_training_device
from heedful.errors import UsageError
from heedful.models import devices
from heedful.runs.training_device import (
    AUTO,
    MOST_COMPARED,
    TrainingDevice,
    describe_device,
    faster_device,
    settled_device,
)
from heedful.tasks.experiment import Experiment
from heedful.tasks.plan import CorpusSize, adapt
from heedful.tasks.throughput import Throughput
from tests.requests import load_experiment

PACES = {"cpu": Throughput(0.0, 5_000.0, 30.0), "cuda": Throughput(0.0, 500_000.0, 300.0, 0.08)}


def chosen(num_pairs: int, name: str = AUTO, memory: str = "") -> tuple[str, str, list[str]]:
    """Device, reason and measured devices for a corpus of short pairs."""
    size, measured = CorpusSize(num_pairs, 12 * num_pairs, 12 * num_pairs), list[str]()
    experiment = load_experiment(adapted=adapt(size, load_experiment()))

    def measure(device: str) -> Throughput:
        measured.append(device)
        if device == memory:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return PACES[device]

    def replan(pace: Throughput) -> Experiment:
        return load_experiment(adapted=adapt(size, experiment, pace))

    device = faster_device(TrainingDevice(name), experiment, num_pairs, measure, replan)
    return device.name, device.reason, measured


def test_a_corpus_of_few_pairs_takes_the_cpu_and_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(PACES, "cpu", Throughput(0.0, 12_000.0, 30.0))
    name, reason, _ = chosen(300)
    assert name == "cpu"
    assert reason.startswith("device: the CPU, because it is faster for so few examples (12,000 against 6,")
    assert reason.endswith("otherwise: --device cuda")


def test_a_large_one_takes_the_gpu_unasked():
    assert chosen(15_000) == ("cuda", "", ["cpu", "cuda"])
    assert chosen(MOST_COMPARED + 1) == ("cuda", "", [])
    for name in ("cpu", "cuda", "cuda:1"):
        assert chosen(300, name) == (name, "", [])


def test_a_gpu_without_memory_for_a_step_leaves_the_cpu():
    assert chosen(300, memory="cuda")[:2] == (
        "cpu",
        "device: the CPU, because the GPU's memory does not hold a step",
    )


def test_auto_is_left_open_only_where_there_are_two_devices(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert choose_training_device("auto") == "auto"
    assert settled_device("auto").name == settled_device("cpu").name == "cpu"
    with pytest.raises(UsageError, match="device cuda: PyTorch sees no CUDA device; train on the CPU"):
        settled_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [settled_device("auto").name, settled_device("cuda:1").name] == ["auto", "cuda:1"]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert settled_device("auto").name == "cuda"


@pytest.mark.parametrize("build", ["13.0", None])
def test_a_gpu_that_pytorch_cannot_use_is_told(build: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """PyTorch says why but once, whoever asks first."""
    said = ["CUDA initialization: The NVIDIA driver on your system is too old (found 11040). Please update"]

    def find_none() -> bool:
        if said:
            warnings.warn(said.pop(), stacklevel=1)
        return False

    monkeypatch.setattr(devices, "_warned", [])
    monkeypatch.setattr(torch.cuda, "is_available", find_none)
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    if build is None:  # PyTorch does not look for a driver
        said.clear()
        assert settled_device("auto").reason == ""
        (tmp_path / "nvidia-smi").touch(0o755)
    assert choose_device("auto") == "cpu"
    device = faster_device(
        settled_device("auto"), load_experiment(), 300, PACES.__getitem__, lambda pace: load_experiment()
    )
    too_old = "The NVIDIA driver on your system is too old (found 11040)"
    problem = too_old if build else "this PyTorch is built for processors alone"
    assert device.name == "cpu"
    assert device.reason == f"device: the CPU, because PyTorch uses no GPU ({problem}); see: heedful doctor"
    with pytest.raises(UsageError, match="PyTorch sees no CUDA device"):
        settled_device("cuda")
    assert settled_device("cpu").reason == ""


@pytest.mark.parametrize(
    ("settings", "pace", "end"),
    [
        ((), None, "batches of 512 positions"),
        (("training.max_minutes=3",), None, "batches of 512 positions, at most 3 min 00 s"),
        # 512 tokens of a step at 5,000 a second.
        (("training.max_steps=100",), PACES["cpu"], "batches of 512 positions, at most 10 s"),
        (("training.max_epochs=50", "training.max_steps=1000"), PACES["cpu"], "at most 20 s"),
        (
            ("training.max_target_tokens=50000", "training.accumulate=2"),
            PACES["cpu"],
            "512 positions x 2, at most 10 s",
        ),
        ((), PACES["cpu"], "batches of 512 positions"),
    ],
)
def test_what_is_said_before_the_first_step(settings: tuple[str, ...], pace: Throughput | None, end: str):
    experiment = load_experiment(settings=("training.batch_tokens=512", "training.precision=float32", *settings))
    line = describe_device("cpu", experiment, 1_000, pace, steps_per_epoch=4)
    assert line.startswith("device: cpu, float32, batches of 512 positions")
    assert line.endswith(end)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_bfloat16_that_the_device_emulates_is_told(device: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    experiment = load_experiment(settings=("training.precision=bfloat16",))
    for has_products in (False, True):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: has_products)  # noqa: B023
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: has_products)  # noqa: B023
        line = describe_device(device, experiment, 1_000_000, None, 4)
        assert ("bfloat16 (which it emulates; training.precision=float32 is faster), batches" in line) != has_products


@pytest.mark.parametrize(
    ("problem", "way"),
    [("", "steps as CUDA graphs"), ("the model is sharded", "steps operation by operation (the model is sharded)")],
)
def test_a_gpu_says_what_runs_and_how_much_of_it_computes(problem: str, way: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "H200")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: True)
    experiment = load_experiment(settings=("training.batch_tokens=10000", "training.max_minutes=3"))
    # 10,000 units take 20 ms, beside 80 ms that do not depend on them.
    line = describe_device("cuda", experiment, 1_000, PACES["cuda"], 4, problem)
    assert line == (
        f"device: cuda (H200), bfloat16, batches of 10,000 positions, {way}, "
        "20% of a step is computation that grows with the batch, at most 3 min 00 s"
    )

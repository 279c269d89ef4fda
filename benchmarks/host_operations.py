"""Operations that Python hands to the device in a training step, counted without a device.

    python benchmarks/host_operations.py [--length 24] [--only transformer,rnnsearch]

Two counts for each model. *Launched*: forward and backward, operation by operation, on PyTorch's device "meta", which
has no numbers and takes the branches of a GPU; operations that only make views are counted apart, since they launch
nothing. It has no fused attention: a scaled dot product is some operations more than on a GPU. *Replayed*: all that a
step hands over once forward and backward are recorded as one graph, in a training step on the CPU whose recording is a
stand-in; clipping, optimizer and copies of the batch are in it. Steps of decoding (beam 5) are counted alike.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest import mock

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.attention import dispatch
from heedful.data.batching import PairBatch
from heedful.models.engine import TorchEngine
from heedful.models.recorded_decoder import RecordedDecoder
from heedful.models.recording import Recorder
from heedful.models.rnnsearch import PRESETS as RECURRENT
from heedful.models.transformer import PRESETS
from heedful.search.inputs import TokenArrays
from heedful.search.interface import Adjust
from heedful.training import train_state
from heedful.training.config import TrainingConfig
from heedful.training.distributed import SingleProcess
from heedful.training.pair_step import PairStep
from heedful.training.train_state import TrainState

VOCABULARY: Final = 8_000
VIEWS: Final = frozenset(
    "view t transpose unsqueeze squeeze expand slice select unbind split split_with_sizes detach _unsafe_view permute "
    "alias as_strided diagonal chunk unflatten empty empty_like "
    "_record_function_enter_new _record_function_exit".split()
)
"""Operations that launch nothing."""
TARGETS: Final = {"transformer": 700, "rnnsearch": 1_500}
MODELS: Final = {"transformer": PRESETS["base"], "rnnsearch": RECURRENT["rnnsearch"]}


class Count(TorchDispatchMode):
    """Counter of dispatched operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.names[func.overloadpacket.__name__] += 1
        return func(*args, **(kwargs or {}))

    @property
    def num_launched(self) -> int:
        """Number of operations that are not only views."""
        return sum(number for name, number in self.names.items() if name not in VIEWS)

    @property
    def num_views(self) -> int:
        return sum(self.names.values()) - self.num_launched


class Graph(Recorder):
    """Stand-in of a recording: replaying it is one launch that computes nothing."""

    def __init__(self) -> None:
        self.num_replayed = 0

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        work()

        def replay() -> None:
            self.num_replayed += 1

        return replay


@contextmanager
def like_a_gpu() -> Generator[None]:
    """Let what asks whether numbers can be looked at believe that it is on a device."""
    asked = torch.is_autocast_enabled
    with ExitStack() as patches:
        for module in ("attention.dispatch", "attention.stepwise", "cpu.derivatives", "training.cross_entropy"):
            patches.enter_context(mock.patch(f"heedful.{module}.concrete", return_value=True))
        patches.enter_context(
            mock.patch("torch.is_autocast_enabled", lambda device: device != "meta" and asked(device))
        )
        yield


def batch_of(num_pairs: int, length: int) -> PairBatch:
    """Pairs whose lengths are between half and all of the longest."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(length // 2, length + 1, num_pairs)
    lengths[0] = length
    real = np.arange(length) < lengths[:, None]
    source, target_in, target_out = (generator.integers(4, VOCABULARY, real.shape) * real for _ in range(3))
    return PairBatch(source, lengths, target_in, target_out, lengths)


def count_launched(name: str, length: int) -> Count:
    """Count forward and backward of a step that is launched operation by operation."""
    model = MODELS[name].build(VOCABULARY, VOCABULARY, name == "transformer").train()
    for part in model.modules():
        if hasattr(part, "codes"):
            part.codes(0, length)
    step = PairStep(model.to("meta"), 0.1)
    step.has_fixed_shape = True
    tensors = [torch.from_numpy(array).to("meta") for array in batch_of(64, length).arrays()]
    counter = Count()
    with like_a_gpu(), counter:
        (step(*tensors).total / torch.empty((), device="meta")).backward()
    return counter


def count_decoding(name: str, length: int) -> tuple[Count, Count]:
    """Count a step of a search by a beam of five, launched and replayed."""
    model = MODELS[name].build(VOCABULARY, VOCABULARY, name == "transformer").eval()
    graph, launched, replayed = Graph(), Count(), Count()
    sources = [np.full(length, 4, dtype=np.int64)] * 2
    for engine, counter in (
        (TorchEngine(model), launched),
        (TorchEngine(model, recorded=RecordedDecoder(model, (), graph)), replayed),
    ):
        with mock.patch("heedful.models.recorded_decoder._difference", return_value=""), without_loops():
            state = engine.start(TokenArrays(sources), 5)
            tokens = np.full((2, 5), 4, dtype=np.int64)
            _, state = engine.step(state, tokens, None, None)
            with counter:
                scores, _ = engine.step(state, tokens, np.zeros((2, 5), dtype=np.int64), None)
                scores.top(10, Adjust(banned=np.array([0, 2], dtype=np.int64)))
    if graph.num_replayed != 2:
        raise AssertionError(f"{name}: replayed {graph.num_replayed} times, not twice")
    replayed.names["(replay)"] += 1
    return launched, replayed


@contextmanager
def without_loops() -> Generator[None]:
    """Leave out compiled loops of a CPU, which nothing counts."""
    kernels = tuple(kernel for kernel in dispatch.KERNELS if kernel.name in {"window", "sdpa", "plain"})
    with mock.patch.object(dispatch, "KERNELS", kernels):
        yield


def count_replayed(name: str, length: int, optimizer: str) -> Count:
    """Count a step whose forward and backward are one replay."""
    graph, counter = Graph(), Count()
    model = MODELS[name].build(VOCABULARY, VOCABULARY, name == "transformer")
    config = TrainingConfig.model_validate(
        {
            "batch_tokens": 64,
            "validate_every": 1,
            "precision": "float32",
            "optimizer": {"kind": optimizer},
            "average": 0,
        }
    )
    with mock.patch.object(train_state, "make_recorder", return_value=graph):
        state = TrainState(PairStep(model, 0.1), config, SingleProcess())
    batch = batch_of(2, length)
    with mock.patch("heedful.training.recorded_step.RecordedStep._difference", return_value=""):
        for number in range(1, 4):
            with counter if number == 3 else ExitStack():
                state.differentiate([batch], batch.num_units)
                state.update(number, 1e-3)
    if graph.num_replayed != 2:
        raise AssertionError(f"{name}: replayed {graph.num_replayed} times, not twice")
    counter.names["(replay)"] += 1
    return counter


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=24)
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--names", action="store_true", help="print the most frequent operations")
    given = parser.parse_args()
    for name in given.only.split(","):
        launched = count_launched(name, given.length)
        print(f"{name}: launched {launched.num_launched:,} operations, and {launched.num_views:,} views")
        if given.names:
            print(f"  {launched.names.most_common(30)}")
        for optimizer in ("adam", "muon"):
            replayed = count_replayed(name, given.length, optimizer)
            print(
                f"{name}: replayed, with {optimizer}: {replayed.num_launched:,} operations, and {replayed.num_views:,} "
                f"views; target {TARGETS[name]:,}"
            )
            if given.names:
                print(f"  {replayed.names.most_common(30)}")
        steps = count_decoding(name, given.length)
        print(f"{name}: a step of decoding: launched {steps[0].num_launched:,}, replayed {steps[1].num_launched:,}")


if __name__ == "__main__":
    main()

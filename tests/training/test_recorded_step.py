"""Recorded training steps learn what launched ones learn, and a step on a device waits for nothing."""

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from heedful.attention import dispatch
from heedful.layers.positions import Positions
from heedful.models.interface import Seq2Seq
from heedful.models.recording import Recorder
from heedful.text.vocabulary import PAD
from heedful.training import train_state
from heedful.training.pair_step import PairStep
from heedful.training.recorded_step import RARE, RecordedStep
from tests.attention.kernels.watch import Watch, without_autocast
from tests.models.tiny import CONFIGS, changed, make_model
from tests.training.tape import Tapes, without_cpu_loops
from tests.training.test_loop import end_of, make_run

RECORDED = [name for name, config in CONFIGS.items() if not PairStep(config.build(11, 9, False), 0.1).recording_problem]
FEW = ["transformer-pre", "transformer-post", "rnnsearch", "luong"]


@pytest.fixture(autouse=True)
def _recordable(monkeypatch: pytest.MonkeyPatch):
    without_cpu_loops(monkeypatch)


def arrays(lengths: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """Source, source lengths, target in, target out."""
    generator = np.random.default_rng(seed)
    real = np.arange(max(lengths)) < np.array(lengths)[:, None]
    ids = [generator.integers(4, 9, real.shape) * real for _ in range(3)]
    return [ids[0], np.array(lengths), ids[1], ids[2]]


BATCHES = [arrays((6, 3, 5, 1)), arrays((2, 6, 6, 4), 1)]


def recorded(model: Seq2Seq, recorder: Recorder, said: list[str] | None = None) -> RecordedStep:
    return RecordedStep(PairStep(model, 0.1), "float32", recorder, ([] if said is None else said).append)


def add(step: RecordedStep, batch: list[np.ndarray], divisor: float = 7.0) -> Tensor | None:
    return step.add(batch, divisor, torch.from_numpy)


def gradients(model: Seq2Seq, batch: list[np.ndarray], divisor: float) -> tuple[float, list[Tensor]]:
    """Of the launched step."""
    loss = PairStep(model, 0.1)(*map(torch.from_numpy, batch)).total / divisor
    found = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
    return float(loss.detach()), list(found)


def test_what_can_be_recorded():
    assert {"transformer-pre", "rnnsearch", "luong"} <= {*RECORDED}
    assert len(RECORDED) > 0.6 * len(CONFIGS)


@pytest.mark.parametrize("name", FEW)
def test_replayed_gradients_are_those_of_the_launched_step(name: str):
    model = make_model(name)
    tapes = Tapes()
    step = recorded(model, tapes)
    for number, batch in enumerate((BATCHES[0], *BATCHES, BATCHES[0])):
        wanted_loss, wanted = gradients(model, batch, 7.0)
        step.begin()
        loss = add(step, batch)
        if number < RARE:
            assert loss is None  # a shape that may never come again
            continue
        assert loss is not None
        assert float(loss) == pytest.approx(wanted_loss, abs=1e-12)
        for parameter, grad in zip(model.parameters(), wanted, strict=True):
            assert parameter.grad is not None
            assert float((parameter.grad - grad).abs().max()) <= 1e-11
        # Weights change between steps, in their places.
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    assert len(tapes.lengths) == 1


def test_shapes_are_few_and_their_number_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.training.recorded_step.MOST_SHAPES", 2)
    tapes = Tapes()
    step = recorded(make_model("rnnsearch"), tapes)
    for lengths in ((3, 2), (8, 1), (5, 5, 5), (9, 2), (17, 2)) * 2:
        step.begin()
        add(step, arrays(lengths))
    assert len(tapes.lengths) == 2  # up to 8 by 8 and up to 16 by 8; the third is launched
    step.forget()
    assert add(step, arrays((3, 2))) is None


@pytest.mark.parametrize("name", FEW[::2])
def test_dropout_is_a_function_of_the_seed_alone(name: str):
    """Whether a shape is new when a step comes, as after a resume, changes nothing."""

    def run(seeds: list[int]) -> list[float]:
        step = recorded(make_model(name).train(), Tapes())
        found = list[float]()
        for seed in seeds:
            torch.manual_seed(seed)
            step.begin()
            loss = add(step, BATCHES[0])
            found += [] if loss is None else [float(loss)]
        return found

    one, two, three = run([0, 1, 2, 3])
    assert len({one, two, three}) == 3
    assert run([0, 3, 1]) == [three, one]


class Frozen(Recorder):
    """Computes nothing anew, as where a seed comes from Python."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        work()

        def again() -> None:  # the loss stays where it is, and what it was
            return

        return again


class Careless(Recorder):
    """Computes the loss, and leaves the gradients as they were."""

    def __init__(self, model: Seq2Seq) -> None:
        self.model = model

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        replay = Tapes().record(work)

        def again() -> None:
            grads = [parameter.grad for parameter in self.model.parameters() if parameter.grad is not None]
            before = [grad.clone() for grad in grads]
            replay()
            for grad, old in zip(grads, before, strict=True):
                grad.copy_(old)

        return again


class Refusing(Recorder):
    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of it")


@pytest.mark.parametrize(
    ("recorder", "reason"),
    [(Frozen(), "a replayed step has the "), (Refusing(), "operation not permitted when stream is capturing")],
)
def test_a_wrong_recording_is_given_up(recorder: Recorder, reason: str):
    said = list[str]()
    model = make_model(changed(CONFIGS["transformer-pre"], dropout=0.9)).train()
    step = recorded(model, recorder, said)
    step.begin()
    assert [add(step, BATCHES[0]) for _ in range(3)] == [None] * 3
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in model.parameters())
    (line,) = said
    assert line.startswith(f"steps are not recorded as CUDA graphs, and take longer: {reason}")
    assert "\n" not in line


def test_a_recording_without_gradients_is_given_up():
    said = list[str]()
    model = make_model("transformer-pre").train()
    step = recorded(model, Careless(model), said)
    step.begin()
    assert [add(step, BATCHES[0]) for _ in range(2)] == [None] * 2
    assert "a replayed step has the norm of the gradient 0, not " in said[0]


def test_a_training_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With gradients that are accumulated, clipped, and let go of after each update."""
    kind, runs, tapes = changed(CONFIGS["rnnsearch"], dropout=0.0), list[dict[str, Tensor]](), Tapes()
    for name in ("launched", "recorded", "eager"):
        if name != "launched":
            monkeypatch.setattr(train_state, "make_recorder", lambda device: tapes)
        execution = {"execution": "eager"} if name == "eager" else {}
        run = make_run(tmp_path / name, kind, max_steps=11, accumulate=2, clip_norm=0.5, **execution)
        run.trainer().run()
        runs.append(end_of(run))
        assert bool(tapes.lengths) == (name != "launched")
    launched, replayed, eager = runs
    for key, weights in launched.items():
        torch.testing.assert_close(replayed[key], weights, rtol=1e-4, atol=1e-5)
        assert torch.equal(eager[key], weights)


class Again(Recorder):
    """Holds no tensors, as a graph does not."""

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        work()
        return work


def test_a_recording_keeps_what_it_reads():
    """A table of positions that a longer batch replaces; a graph would go on reading the memory where it was."""
    model = make_model("transformer-pre")
    step = recorded(model, Again())
    for _ in range(2):
        step.begin()
        add(step, BATCHES[0])
    tables = [weakref.ref(each) for each in model.buffers() if each.dim() == 2]
    PairStep(model, 0.1)(*map(torch.from_numpy, arrays((90, 3))))
    gc.collect()
    assert len(tables) == 2
    assert all(table() is not None for table in tables)
    step.forget()
    gc.collect()
    assert all(table() is None for table in tables)


def test_a_batch_that_is_padded_beyond_the_last_position_is_launched():
    said = list[str]()
    step = recorded(make_model(changed(CONFIGS["transformer-learned"], max_positions=11)), tapes := Tapes(), said)
    for lengths in ((11, 3), (11, 3), (11, 3), (7, 3), (7, 3)):
        step.begin()
        loss = add(step, arrays(lengths))
    assert loss is not None
    assert len(tapes.lengths) == 1
    assert not said
    assert all(parameter.grad is not None for parameter in step._module.parameters())  # pyright: ignore[reportPrivateUsage]


def test_a_training_knows_why_its_steps_are_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(train_state, "make_recorder", lambda device: Tapes())
    for execution, problem in (("auto", ""), ("eager", "training.execution=eager")):
        trainer = make_run(tmp_path / execution, CONFIGS["rnnsearch"], execution=execution).trainer()
        assert trainer.recording_problem == problem
    monkeypatch.undo()
    assert not make_run(tmp_path / "cpu", CONFIGS["rnnsearch"], execution="eager").trainer().recording_problem


def test_padding_counts_for_nothing():
    step = PairStep(make_model("rnnsearch"), 0.1)
    source, lengths, _target_in, target_out = BATCHES[0]
    padded = step.pad(BATCHES[0])
    assert [part.shape for part in padded] == [(8, 6), (8,), (8, 6), (8, 6)]
    assert np.array_equal(padded[0][:4, :6], source)
    assert padded[1].tolist() == [*lengths.tolist(), *[lengths[-1]] * 4]
    assert int((padded[3] != PAD).sum()) == int((target_out != PAD).sum())
    again = step.pad(padded)
    assert all(np.array_equal(one, other) for one, other in zip(padded, again, strict=True))
    packed = step(*map(torch.from_numpy, BATCHES[0]))
    step.has_fixed_shape = True
    with torch.no_grad():
        sums = step(*map(torch.from_numpy, padded))
    for one, other in zip(packed, sums, strict=True):
        assert float(one.detach()) == pytest.approx(float(other), abs=1e-10)


@pytest.mark.parametrize("name", RECORDED)
def test_a_step_touches_nothing_on_the_host(name: str, monkeypatch: pytest.MonkeyPatch):
    """On PyTorch's device without numbers, which takes the branches of a GPU."""
    without_autocast(monkeypatch)
    monkeypatch.setattr(dispatch, "concrete", lambda *tensors: True)
    model = make_model(name).train()
    for positions in (module for module in model.modules() if isinstance(module, Positions)):
        positions.codes(0, 16)
    step = PairStep(model.to("meta"), 0.1)
    step.has_fixed_shape = True
    tensors = [torch.from_numpy(part).to("meta") for part in step.pad(BATCHES[0])]
    with Watch("meta"):
        loss = step(*tensors).total / torch.empty((), device="meta")
        torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)

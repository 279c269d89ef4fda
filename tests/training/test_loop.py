"""The training loop: one update, limits, validation, stopping and going on as if nothing had been."""

import errno
import json
import math
import os
import signal
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, groupby
from pathlib import Path

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from heedful.data.batching import PairBatch, PairSampler, make_batch, pairs_by_length
from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.errors import NonFiniteError, ResourceError, Stopped
from heedful.layers.normalizing import NormalizerLayer, is_soft_step
from heedful.models.interface import Seq2Seq
from heedful.training.checkpoint import CheckpointFolder
from heedful.training.config import TrainingConfig
from heedful.training.guided import Guidance
from heedful.training.likelihood import log_likelihood
from heedful.training.loop import Trainer
from heedful.training.pair_step import PairStep
from heedful.training.progress import Ends, Progress, Validation
from tests.models.tiny import CONFIGS, NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, Config, changed
from tests.prove.disk import Call, calls
from tests.thorough import is_thorough, sampled, thinned, thorough

NUM_STEPS = 11
"""About three epochs of the corpus below."""


def make_corpus(num: int = 16, seed: int = 0, is_linked: bool = False) -> EncodedCorpus:
    generator = np.random.default_rng(seed)

    def side(vocabulary: int) -> EncodedSide:
        lengths = generator.integers(0, 7, size=num)
        return EncodedSide.of([[*generator.integers(4, vocabulary, size=length).tolist(), 3] for length in lengths])

    source, target = side(NUM_SOURCE_TOKENS), side(NUM_TARGET_TOKENS)
    if not is_linked:
        return EncodedCorpus(source, target)
    # The diagonal, of both end marks neither.
    along = [[*range(int(min(lengths)) - 1)] for lengths in zip(source.lengths, target.lengths, strict=True)]
    return EncodedCorpus(source, target, EncodedCorpus(EncodedSide.of(along), EncodedSide.of(along)))


CORPUS, LINKED = make_corpus(), make_corpus(is_linked=True)


@pytest.fixture(autouse=True)
def _without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch):
    # Hundreds of checkpoints: that they are synced is tests/training/test_checkpoint.py's business.
    monkeypatch.setattr("heedful.training.checkpoint.sync", lambda path: None)


def make_config(**changes: object) -> TrainingConfig:
    optimizer = {"learning_rate": 0.01, "schedule": {"warmup_steps": 4}}
    defaults: dict[str, object] = {"batch_tokens": 32, "validate_every": 4, "select_by": "loss", "precision": "float32"}
    return TrainingConfig.model_validate(defaults | {"optimizer": optimizer} | changes)


@dataclass
class Run:
    """A trainer on a fresh model, and what it told."""

    folder: Path
    config: TrainingConfig
    model: Seq2Seq
    watched: list[Progress] = field(default_factory=list)
    kept: list[dict[str, Tensor]] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    validate: Callable[[Seq2Seq], Validation] | None = None
    test_seconds: Callable[[float], float] = lambda seconds: 0.0
    steps: list[int] = field(default_factory=lambda: [0])

    def trainer(self) -> Trainer:
        def scores(model: Seq2Seq) -> Validation:
            assert not model.training
            return Validation(
                {"loss": log_likelihood(PairStep(model, 0.0), pairs_by_length(CORPUS)).loss}, ("a", "b", "c")
            )

        def keep(weights: Mapping[str, Tensor]) -> None:
            self.kept.append({name: tensor.detach().clone() for name, tensor in weights.items()})

        config = self.config
        corpus = LINKED if config.alignment_weight else CORPUS
        return Trainer(
            PairStep(self.model, config.label_smoothing, Guidance(config.alignment_weight)),
            config,
            PairSampler(corpus, config.batch_tokens, config.seed),
            self.folder,
            self.validate or scores,
            config.select_by not in ("loss", "token_error_rate"),
            keep,
            self.watched.append,
            self.warned.append,
            test_seconds=self.test_seconds,
        )

    @property
    def validations(self) -> list[tuple[int, float]]:
        return [(p.step, p.validation.scores["loss"]) for p in self.watched if p.validation is not None]


def make_run(folder: Path, kind: str | Config = "transformer-post", **changes: object) -> Run:
    torch.manual_seed(7)
    model = (CONFIGS[kind] if isinstance(kind, str) else kind).build(
        NUM_SOURCE_TOKENS, NUM_TARGET_TOKENS, is_shared=False
    )
    return Run(folder, make_config(**changes), model)


def stop_at(run: Run, step: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Send a signal in the middle of a step, counted over all resumes."""
    done = CheckpointFolder(run.folder / "checkpoints").load_newest()
    calls = 0 if done is None else done.step * run.config.accumulate

    def send(module: torch.nn.Module, inputs: object) -> None:
        nonlocal calls
        if module.training:
            calls += 1
            if calls == (step - 1) * run.config.accumulate + 1:
                os.kill(os.getpid(), number)

    run.model.register_forward_pre_hook(send)


def end_of(run: Run) -> dict[str, Tensor]:
    """Everything that the run's last checkpoint holds."""
    checkpoint = CheckpointFolder(run.folder / "checkpoints").load_newest()
    assert checkpoint is not None
    assert checkpoint.step == NUM_STEPS
    tensors = {f"{group}/{name}": tensor for group, held in checkpoint.tensors.items() for name, tensor in held.items()}
    state = {name: value for name, value in checkpoint.state.items() if name not in ("seconds", "update_seconds")}
    return tensors | {"state": torch.frombuffer(bytearray(json.dumps(state).encode()), dtype=torch.uint8)}


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# ------------------------------------------------------------------------------------------------ going on


# Keys are drawn, and the baseline of their rewards moves with every batch.
SAMPLED = changed(CONFIGS["rnnsearch"], attention={"normalizer": "sampled"})


@pytest.mark.parametrize(
    ("kind", "accumulate"),
    thinned([(SAMPLED, 2), ("transformer-pre", 2), ("transformer-post", 1), ("rnnsearch", 1)], 4),
)
def test_a_stopped_run_goes_on_to_the_same_bits(kind: str | Config, accumulate: int, tmp_path: Path):
    whole = make_run(tmp_path / "whole", kind, max_steps=NUM_STEPS, accumulate=accumulate)
    whole.trainer().run()
    # The first, those around a validation and an epoch's end, and the last.
    for step in (1, 3, 4, 5, 8, NUM_STEPS - 1):
        run = make_run(tmp_path / str(step), kind, max_steps=NUM_STEPS, accumulate=accumulate)
        stop_at(run, step)
        with pytest.raises(Stopped, match=f"stopped at step {step};") as caught:
            run.trainer().run()
        assert caught.value.exit_code == 143
        again = make_run(tmp_path / str(step), kind, max_steps=NUM_STEPS, accumulate=accumulate)
        outcome = again.trainer().run()
        assert outcome.step == NUM_STEPS
        assert equal(end_of(again), end_of(whole)), f"stopped at {step}"
        assert run.validations + again.validations == whole.validations


STRAIGHT = changed(CONFIGS["rnnsearch"], attention={"normalizer": "straight_through"})
STRUCTURED = CONFIGS["transformer-local"]
SOFT = {
    "drawn": (SAMPLED, CONFIGS["rnnsearch"]),
    "straight": (STRAIGHT, CONFIGS["rnnsearch"]),
    "structured": (
        STRUCTURED,
        changed(
            STRUCTURED,
            encoder_attention={"normalizer": "softmax", "score": "cosine"},
            decoder_attention={"normalizer": "softmax", "window": "local-m", "half_width": 3},
        ),
    ),
}
"""Models, and the same ones with softmax in the place of other normalizers."""


@sampled(3)
@pytest.mark.parametrize("name", SOFT)
def test_the_steps_of_a_soft_start_are_those_of_softmax(name: str, tmp_path: Path):
    runs = [make_run(tmp_path / str(i), kind, max_steps=4, soft_start=4) for i, kind in enumerate(SOFT[name])]
    hard = make_run(tmp_path / "hard", SOFT[name][0], max_steps=4)
    for run in (*runs, hard):
        run.trainer().run()
    learned, wanted, other = (dict(run.model.named_parameters()) for run in (*runs, hard))
    assert all(torch.equal(learned[key], wanted[key]) for key in wanted)
    assert not all(torch.equal(other[key], wanted[key]) for key in wanted)
    # What is validated attends as the model does without a soft start.
    assert runs[0].validations != runs[1].validations


@pytest.mark.parametrize("name", thinned(SOFT, 3))
def test_a_run_with_a_soft_start_goes_on_to_the_same_bits(name: str, tmp_path: Path):
    settings = {"max_steps": NUM_STEPS, "soft_start": 5}
    whole = make_run(tmp_path / "whole", SOFT[name][0], **settings)
    whole.trainer().run()
    for step in (5, 6):
        run = make_run(tmp_path / str(step), SOFT[name][0], **settings)
        stop_at(run, step)
        with pytest.raises(Stopped):
            run.trainer().run()
        again = make_run(tmp_path / str(step), SOFT[name][0], **settings)
        again.trainer().run()
        assert equal(end_of(again), end_of(whole)), f"stopped at {step}"
    soft = make_run(tmp_path / "soft", SOFT[name][0], **(settings | {"soft_start": NUM_STEPS}))
    soft.trainer().run()
    assert not equal(end_of(soft), end_of(whole))


def test_some_later_steps_are_soft_and_the_same_after_a_stop(tmp_path: Path):
    hard = next(iter(SOFT.values()))[0]
    settings = {"max_steps": NUM_STEPS, "soft_start": 1, "soft_share": 0.5}
    flags = [is_soft_step(step, 1, 0.5, seed=1) for step in range(1, NUM_STEPS + 1)]
    assert True in flags[1:]
    assert False in flags
    whole, plain = (
        make_run(tmp_path / "whole", hard, **settings),
        make_run(tmp_path / "plain", hard, max_steps=NUM_STEPS),
    )
    seen: list[bool] = []
    layer = next(part for part in whole.model.modules() if isinstance(part, NormalizerLayer))
    layer.register_forward_pre_hook(lambda module, _: seen.append(module.is_soft) if module.training else None)
    for run in (whole, plain):
        run.trainer().run()
    assert [flag for flag, _ in groupby(seen)] == [flag for flag, _ in groupby(flags)]
    assert not equal(end_of(plain), end_of(whole))
    for step in (3, 4):
        run = make_run(tmp_path / str(step), hard, **settings)
        stop_at(run, step)
        with pytest.raises(Stopped):
            run.trainer().run()
        again = make_run(tmp_path / str(step), hard, **settings)
        again.trainer().run()
        assert equal(end_of(again), end_of(whole)), f"stopped at {step}"


@pytest.mark.parametrize(("kind", "accumulate"), thinned([("rnnsearch", 2), ("transformer-pre", 1)], 2))
def test_a_run_with_guided_alignment_goes_on_to_the_same_bits(kind: str, accumulate: int, tmp_path: Path):
    settings = {"max_steps": NUM_STEPS, "accumulate": accumulate, "alignment_weight": 0.5}
    whole = make_run(tmp_path / "whole", kind, **settings)
    whole.trainer().run()
    run = make_run(tmp_path / "parts", kind, **settings)
    stop_at(run, 5)
    with pytest.raises(Stopped):
        run.trainer().run()
    again = make_run(tmp_path / "parts", kind, **settings)
    again.trainer().run()
    assert equal(end_of(again), end_of(whole))
    plain = make_run(tmp_path / "plain", kind, **(settings | {"alignment_weight": 0.0}))
    plain.trainer().run()
    assert not equal(end_of(plain), end_of(whole))


def test_a_run_may_be_stopped_more_than_once(tmp_path: Path):
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    for step in (2, 3, 7, 8):
        run = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
        stop_at(run, step, signal.SIGINT)
        with pytest.raises(Stopped) as caught:
            run.trainer().run()
        assert caught.value.exit_code == 130
    last = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    last.trainer().run()
    assert equal(end_of(last), end_of(whole))


def stop_in_validation(run: Run, step: int) -> list[str]:
    """Send a signal in the middle of the validation of a step; the result says how far that validation got."""
    reached: list[str] = []

    def validate(model: Seq2Seq) -> Validation:
        if run.steps[-1] == step:
            reached.append("before")
            os.kill(os.getpid(), signal.SIGINT)
            reached.append("after")
        return Validation({"loss": log_likelihood(PairStep(model, 0.0), pairs_by_length(CORPUS)).loss}, ("a", "b", "c"))

    run.model.register_forward_pre_hook(lambda module, inputs: run.steps.append(run.steps[-1] + module.training))
    run.validate = validate
    return reached


@pytest.mark.parametrize("step", [4, NUM_STEPS])
def test_a_signal_ends_a_validation_at_once_which_is_repeated(step: int, tmp_path: Path):
    """In the last validation too, which is not taken for done: neither its score nor a test of the model follows."""
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    run = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    reached = stop_in_validation(run, step)
    with pytest.raises(Stopped, match=f"stopped at step {step};") as caught:
        run.trainer().run()
    assert (caught.value.exit_code, reached) == (130, ["before"])
    assert [line for line in run.warned if "SIGINT received" in line]
    again = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    assert again.trainer().run().step == NUM_STEPS
    assert equal(end_of(again), end_of(whole))
    assert run.validations + again.validations == whole.validations


def test_a_signal_in_the_last_step_is_honoured_before_its_validation(tmp_path: Path):
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    run = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    stop_at(run, NUM_STEPS)
    with pytest.raises(Stopped, match=f"stopped at step {NUM_STEPS};"):
        run.trainer().run()
    assert NUM_STEPS not in dict(run.validations)
    again = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    again.trainer().run()
    assert equal(end_of(again), end_of(whole))
    assert run.validations + again.validations == whole.validations


@sampled(2)
@pytest.mark.parametrize(
    ("kind", "average"),
    [
        *(("adam", 8.0), ("muon", 0.0), ("adadelta", 8.0), ("sgd", 0.0)),
        *map(is_thorough, (("adam", 0.0), ("muon", 8.0), ("adadelta", 0.0), ("sgd", 8.0))),
    ],
)
def test_every_optimizer_goes_on_with_and_without_average(kind: str, average: float, tmp_path: Path):
    changes = {"optimizer": {"kind": kind, "learning_rate": 0.01}, "average": average, "max_steps": NUM_STEPS}
    whole = make_run(tmp_path / "whole", **changes)
    whole.trainer().run()
    run = make_run(tmp_path / "parts", **changes)
    stop_at(run, 6)
    with pytest.raises(Stopped):
        run.trainer().run()
    again = make_run(tmp_path / "parts", **changes)
    again.trainer().run()
    assert equal(end_of(again), end_of(whole))


def test_a_limit_may_be_raised(tmp_path: Path):
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    assert make_run(tmp_path / "parts", max_steps=8).trainer().run().reason == "8 steps"
    again = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    assert again.trainer().run().step == NUM_STEPS
    assert equal(end_of(again), end_of(whole))


def test_a_finished_run_does_nothing_more(tmp_path: Path):
    make_run(tmp_path, max_steps=NUM_STEPS).trainer().run()
    again = make_run(tmp_path, max_steps=NUM_STEPS)
    outcome = again.trainer().run()
    assert (outcome.step, outcome.reason) == (NUM_STEPS, f"{NUM_STEPS} steps")
    assert again.watched == []


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(tmp_path: Path):
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    make_run(tmp_path / "parts", max_steps=9).trainer().run()
    newest = max((tmp_path / "parts" / "checkpoints").iterdir())
    (newest / "model.safetensors").write_bytes(b"rubbish")
    again = make_run(tmp_path / "parts", max_steps=NUM_STEPS)
    again.trainer().run()
    assert any("000009" in line for line in again.warned)
    for name in ("model", "average", "optimizer"):
        ends = [{k: v for k, v in end_of(run).items() if k.startswith(name)} for run in (again, whole)]
        assert equal(*ends)


def test_metrics_after_the_checkpoint_are_logged_once(tmp_path: Path):
    """A run killed between a validation and its checkpoint, within a line."""
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    make_run(tmp_path / "parts", max_steps=4).trainer().run()
    metrics = tmp_path / "parts" / "metrics.jsonl"
    begun = metrics.read_bytes()
    metrics.write_bytes(begun + b'{"step": 8, "scores": {}}\n{"step": 1')
    make_run(tmp_path / "parts", max_steps=NUM_STEPS).trainer().run()
    lines = metrics.read_bytes().decode().split("\n")[:-1]
    assert metrics.read_bytes().startswith(begun)
    assert [json.loads(line)["step"] for line in lines] == [4, 8, 11]
    assert [json.loads(line)["scores"]["loss"] for line in lines] == [loss for _, loss in whole.validations]


@contextmanager
def failing_saves(*steps: int) -> Generator[None]:
    """The disk is full while these steps are saved."""

    def see(call: Call) -> None:
        if call.name == "mkdir" and any(call.path.name.startswith(f".{step:06d}-") for step in steps):
            call.fail(errno.ENOSPC)

    with calls(see):
        yield


def test_a_full_disk_costs_no_step(tmp_path: Path):
    whole = make_run(tmp_path / "whole", max_steps=NUM_STEPS)
    whole.trainer().run()
    run = make_run(tmp_path / "full", max_steps=NUM_STEPS)
    with failing_saves(4, 8):
        assert run.trainer().run().step == NUM_STEPS
    assert equal(end_of(run), end_of(whole))
    assert [line.partition("checkpoint of ")[2].partition(":")[0] for line in run.warned] == [
        "step 4 not saved",
        "step 8 not saved",
    ]
    assert run.validations == whole.validations


def test_a_last_save_that_fails_ends_the_training_with_an_error(tmp_path: Path):
    run = make_run(tmp_path, max_steps=NUM_STEPS)
    with failing_saves(NUM_STEPS), pytest.raises(ResourceError) as caught:
        run.trainer().run()
    assert caught.value.exit_code == 5
    assert str(caught.value).startswith(f"finished at step {NUM_STEPS}, but not saved: ")
    assert "; the last checkpoint is of step 8; free some space" in str(caught.value)
    again = make_run(tmp_path, max_steps=NUM_STEPS)
    assert again.trainer().run().step == NUM_STEPS


def test_a_stop_that_cannot_be_saved_is_no_stop_that_was_saved(tmp_path: Path):
    run = make_run(tmp_path, max_steps=NUM_STEPS)
    stop_at(run, 6)
    with failing_saves(6), pytest.raises(ResourceError, match=r"^stopped at step 6, but not saved: .* is of step 4;"):
        run.trainer().run()


@pytest.mark.parametrize("limit", [{"max_epochs": 2}, {"max_target_tokens": 400}])
def test_the_rate_falls_to_zero_at_whatever_limit_ends_the_training(tmp_path: Path, limit: dict[str, int]):
    schedule = {"kind": "linear", "warmup_steps": 1}
    run = make_run(tmp_path, validate_every=1, optimizer={"learning_rate": 0.01, "schedule": schedule}, **limit)
    run.trainer().run()
    rates = [progress.learning_rate for progress in run.watched]
    assert rates[0] == 0.01
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.15 * rates[0]


def test_resuming_names_the_checkpoint_that_is_taken(tmp_path: Path):
    make_run(tmp_path, max_steps=9).trainer().run()
    assert make_run(tmp_path, max_steps=9).trainer().resume() == 9
    (tmp_path / "checkpoints" / "000009" / "model.safetensors").write_bytes(b"rubbish")
    again = make_run(tmp_path, max_steps=9)
    trainer = again.trainer()
    assert (trainer.resume(), trainer.resume()) == (8, 8)
    assert trainer.run().step == 9
    assert len(again.warned) == 1
    assert make_run(tmp_path / "new", max_steps=9).trainer().resume() == 0


# -------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("max_steps", [1, 3, 4, 5])
def test_the_last_step_is_validated_and_saved_however_short_the_run(max_steps: int, tmp_path: Path):
    run = make_run(tmp_path, max_steps=max_steps)
    outcome = run.trainer().run()
    assert outcome.reason == f"{max_steps} steps"
    assert [step for step, _ in run.validations] == sorted({4, max_steps} if max_steps > 4 else {max_steps})
    assert run.kept
    assert outcome.best_step > 0


def test_epochs_end_where_every_pair_was_seen(tmp_path: Path):
    run = make_run(tmp_path, max_epochs=2, validate_every=1000)
    outcome = run.trainer().run()
    assert outcome.reason == "2 epochs"
    checkpoint = CheckpointFolder(tmp_path / "checkpoints").load_newest()
    assert checkpoint is not None
    assert checkpoint.state["epoch"] == 1
    assert run.watched[-1].epoch == 2.0
    assert run.watched[-1].done == 1.0


def test_minutes_are_a_limit_too(tmp_path: Path):
    outcome = make_run(tmp_path, max_minutes=1e-9).trainer().run()
    assert (outcome.step, outcome.reason) == (1, "1e-09 minutes")


class Clock:
    """A clock on which only updates and validations take time."""

    def __init__(self, run: Run, update: float, validation: float) -> None:
        self.now = 0.0

        def validate(model: Seq2Seq) -> Validation:
            self.now += validation
            return Validation({"loss": log_likelihood(PairStep(model, 0.0), pairs_by_length(CORPUS)).loss})

        def step(module: torch.nn.Module, inputs: object) -> None:
            self.now += update if module.training else 0.0

        run.model.register_forward_pre_hook(step)
        run.validate = validate


@pytest.mark.parametrize(
    ("validation", "after", "every"),
    thinned([(100.0, 0.5, 7), (20.0, 2.0, 10), (20.0, 0.0, 10), (1.0, 9.0, 50)], 4),
)
def test_minutes_cover_the_last_validation_and_the_work_after_training(
    validation: float, after: float, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = make_run(tmp_path, max_minutes=5, validate_every=every, patience=10_000)
    run.test_seconds = lambda seconds: after * seconds
    clock = Clock(run, 1.0, validation)
    monkeypatch.setattr("heedful.training.loop.time.monotonic", lambda: clock.now)
    outcome = run.trainer().run()
    assert outcome.reason == "5 minutes"
    end = clock.now + after * validation
    assert end <= 300.0 + validation  # within a validation's length
    assert end >= 300.0 - validation - 1.0  # and no time is wasted
    # The same command finds it finished, though the time was not up when training ended.
    again = make_run(tmp_path, max_minutes=5, validate_every=every, patience=10_000)
    assert again.trainer().run().step == outcome.step
    more = make_run(tmp_path, max_minutes=6, validate_every=every, patience=10_000)
    clock = Clock(more, 1.0, validation)
    assert more.trainer().run().step > outcome.step


@thorough
def test_the_rate_lands_at_zero_before_the_work_after_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    optimizer = {"learning_rate": 0.01, "schedule": {"kind": "linear", "warmup_steps": 1}}

    def trained(minutes: float) -> list[float]:
        run = make_run(tmp_path, max_minutes=minutes, validate_every=10, patience=10_000, optimizer=optimizer)
        run.test_seconds = lambda seconds: 2.0 * seconds
        clock = Clock(run, 1.0, 20.0)
        monkeypatch.setattr("heedful.training.loop.time.monotonic", lambda: clock.now)
        run.trainer().run()
        return [progress.learning_rate for progress in run.watched]

    short = trained(5)
    assert max(short) > 0.008
    assert short[-1] <= 0.01 * 22 / 300  # the last update and a validation; the test after it takes 40 s more
    assert short == sorted(short, reverse=True)
    longer = trained(10)
    assert longer[0] == pytest.approx(0.01 * 0.5, rel=0.15)  # half of the time is left
    assert longer[-1] <= 0.01 * 22 / 600


@pytest.mark.parametrize("accumulate", [1, 2])
def test_target_tokens_are_a_limit_too(accumulate: int, tmp_path: Path):
    """Real ones of every batch, and over a stop; the step that reaches the limit is the last."""
    num_tokens = int(CORPUS.target.lengths.sum())  # an epoch's
    run = make_run(tmp_path / "one", max_target_tokens=2 * num_tokens, validate_every=1000, accumulate=accumulate)
    outcome = run.trainer().run()
    assert outcome.reason == f"{2 * num_tokens} target tokens"
    assert 2 * num_tokens <= outcome.num_target_tokens < 3 * num_tokens
    if accumulate == 1:
        assert outcome.num_target_tokens == 2 * num_tokens
        assert run.watched[-1].epoch == 2.0
    assert run.watched[-1].done == 1.0
    assert 0 < outcome.tokens_per_second
    assert outcome.num_target_tokens / outcome.tokens_per_second <= outcome.seconds
    parts = make_run(tmp_path / "two", max_steps=2, accumulate=accumulate)
    first = parts.trainer().run()
    again = make_run(tmp_path / "two", max_steps=outcome.step, accumulate=accumulate).trainer().run()
    assert 0 < first.num_target_tokens < again.num_target_tokens == outcome.num_target_tokens


def test_speed_counts_updates_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ticks = (float(number) for number in range(10**9))
    monkeypatch.setattr("heedful.training.loop.time.monotonic", lambda: next(ticks))  # an update looks twice
    outcome = make_run(tmp_path, max_steps=5, validate_every=2).trainer().run()
    assert outcome.tokens_per_second == outcome.num_target_tokens / 5
    assert outcome.seconds > 5


@pytest.mark.skipif(os.name == "nt", reason="no process is stopped there")
def test_time_in_which_the_process_stood_still_is_no_training_time(tmp_path: Path):
    run = make_run(tmp_path, max_steps=1)

    def stand_still(module: torch.nn.Module, inputs: object) -> None:
        if module.training:
            time.sleep(3.0)
            signal.raise_signal(signal.SIGCONT)

    run.model.register_forward_pre_hook(stand_still)
    assert run.trainer().run().seconds < 3.0


def test_training_ends_when_validation_stops_improving(tmp_path: Path):
    run = make_run(tmp_path, validate_every=1, patience=3)
    losses = iter([5.0, 4.0, 4.5, 4.0, 4.1, 9.9, 9.9])
    run.validate = lambda model: Validation({"loss": next(losses)})
    outcome = run.trainer().run()
    assert outcome.reason == "no better loss in 3 validations"
    assert (outcome.step, outcome.best, outcome.best_step) == (5, 4.0, 2)
    assert len(run.kept) == 2
    assert [p.is_best for p in run.watched if p.validation] == [True, True, False, False, False]
    assert [report.ends for report in run.watched][-1] == Ends(num_without_better=2, patience=3)


def test_of_equal_scores_that_with_the_lower_loss_is_best(tmp_path: Path):
    run = make_run(tmp_path, validate_every=1, patience=3, select_by="exact_match")
    losses = iter([5.0, 4.0, 4.5, 4.0, 9.9])
    run.validate = lambda model: Validation({"exact_match": 0.0, "loss": next(losses)})
    outcome = run.trainer().run()
    assert [p.is_best for p in run.watched if p.validation] == [True, True, False, False]
    # Lower loss alone does not keep a training going: it would never end where every output is right.
    assert (outcome.reason, outcome.best_step) == ("no better exact_match in 3 validations", 2)


def test_what_was_best_is_remembered_across_a_stop(tmp_path: Path):
    losses = {1: 5.0, 2: 3.0, 3: 4.0, 4: 3.5, 5: 3.0, 6: 1.0}
    run, again = (make_run(tmp_path, validate_every=1, patience=3) for _ in range(2))
    for part, start in ((run, 1), (again, 3)):  # the stop comes before the validation of step 3
        steps = count(start)
        part.validate = lambda model, steps=steps: Validation({"loss": losses[next(steps)]})
    stop_at(run, 3)
    with pytest.raises(Stopped):
        run.trainer().run()
    outcome = again.trainer().run()
    assert (outcome.step, outcome.best, outcome.best_step) == (5, 3.0, 2)
    assert outcome.reason == "no better loss in 3 validations"
    assert (len(run.kept), len(again.kept)) == (2, 0)


def test_the_best_score_is_the_highest_or_the_lowest_by_the_direction_of_its_name(tmp_path: Path):
    for metric, best_step, best in (("bleu", 3, 3.0), ("chrf", 3, 3.0), ("token_error_rate", 2, 1.0), ("loss", 2, 1.0)):
        run = make_run(tmp_path / metric, validate_every=1, max_steps=3, select_by=metric)
        values = iter([2.0, 1.0, 3.0])
        run.validate = lambda model, metric=metric, values=values: Validation({metric: next(values)})
        outcome = run.trainer().run()
        assert (outcome.best_step, outcome.best) == (best_step, best)


def test_a_score_that_is_not_a_number_is_never_the_best(tmp_path: Path):
    run = make_run(tmp_path, validate_every=1, max_steps=2)
    values = iter([math.nan, 3.0])
    run.validate = lambda model: Validation({"loss": next(values)})
    assert run.trainer().run().best_step == 2


# -------------------------------------------------------------------------------------------------- update


PLAIN = {"kind": "sgd", "learning_rate": 1.0, "schedule": {"kind": "constant", "warmup_steps": 0}}
"""An update is the gradient itself."""
SURE = [
    changed(CONFIGS["transformer-post"], dropout=0.0, attention_dropout=0.0),
    changed(CONFIGS["rnnsearch"], dropout=0.0),
]
"""Models without chance."""


@pytest.mark.parametrize("kind", SURE, ids=lambda config: config.kind)
@pytest.mark.parametrize(("num_parts", "alignment_weight"), [(2, 0.0), (3, 0.0), (8, 0.0), (3, 0.7)])
def test_accumulated_gradients_are_those_of_one_big_batch(
    num_parts: int, alignment_weight: float, kind: Config, tmp_path: Path
):
    updated: list[list[Tensor]] = []
    order = np.argsort(CORPUS.target.lengths)  # parts of very different numbers of tokens
    for parts in (1, num_parts):
        weight = {"alignment_weight": alignment_weight}
        run = make_run(tmp_path / str(parts), kind, optimizer=PLAIN, clip_norm=0.0, **weight)
        run.model.double()
        run.trainer()._update([make_batch(LINKED, rows) for rows in np.array_split(order, parts)])
        updated.append([parameter.detach() for parameter in run.model.parameters()])
    assert all(float((one - other).abs().max()) <= 1e-12 for one, other in zip(*updated, strict=True))


@pytest.mark.parametrize("kind", SURE, ids=lambda config: config.kind)
@pytest.mark.parametrize("alignment_weight", [0.0, 0.7])
def test_the_gradient_is_of_the_mean_over_tokens(alignment_weight: float, kind: Config, tmp_path: Path):
    run = make_run(tmp_path, kind, optimizer=PLAIN, clip_norm=0.0, alignment_weight=alignment_weight)
    run.model.double()
    batch = make_batch(LINKED, np.arange(5))
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    arrays = (batch.source, batch.source_lengths, batch.target_in, batch.target_out, batch.links)
    sums = PairStep(run.model, 0.1, Guidance(alignment_weight))(*(torch.from_numpy(array) for array in arrays))
    gradients = torch.autograd.grad(sums.total / sums.num_units, list(run.model.parameters()))
    run.trainer()._update([batch])
    for old, gradient, new in zip(before, gradients, run.model.parameters(), strict=True):
        assert float((old - gradient - new).detach().abs().max()) <= 1e-12
    assert max(float(gradient.abs().max()) for gradient in gradients) > 0.01


@pytest.mark.parametrize("kind", SURE, ids=lambda config: config.kind)
def test_the_gradient_may_be_of_the_mean_over_pairs_while_losses_told_are_of_tokens(kind: Config, tmp_path: Path):
    updated: list[list[Tensor]] = []
    batches = [make_batch(CORPUS, np.arange(5)), make_batch(CORPUS, np.arange(5, 7))]
    num_tokens = sum(batch.num_units for batch in batches)
    told: list[float] = []
    for mean_over, rate in (("tokens", num_tokens / 7), ("pairs", 1.0)):
        optimizer = PLAIN | {"mean_over": mean_over, "learning_rate": rate}
        run = make_run(tmp_path / mean_over, kind, optimizer=optimizer, clip_norm=0.0)
        run.model.double()
        trainer = run.trainer()
        trainer._update(batches)
        told.append(trainer._progress().loss)
        updated.append([parameter.detach() for parameter in run.model.parameters()])
    assert all(float((one - other).abs().max()) <= 1e-12 for one, other in zip(*updated, strict=True))
    assert told[0] == pytest.approx(told[1], rel=1e-9)


def test_a_rate_may_be_halved_by_epochs(tmp_path: Path):
    schedule = {"kind": "halving", "warmup_steps": 0, "halve_in": "epochs", "halve_after": 1, "halve_every": 1}
    optimizer = {"kind": "sgd", "learning_rate": 1.0, "schedule": schedule}
    run = make_run(tmp_path, optimizer=optimizer, max_epochs=3, validate_every=1, patience=100)
    run.trainer().run()
    per_epoch = [[p.learning_rate for p in run.watched if math.ceil(p.epoch) == epoch] for epoch in (1, 2, 3)]
    assert [set(rates) for rates in per_epoch] == [{1.0}, {0.5}, {0.25}]


@pytest.mark.parametrize("clip_norm", [0.0, 1e-3])
def test_gradients_are_scaled_down_to_the_norm(clip_norm: float, tmp_path: Path):
    run = make_run(tmp_path, optimizer=PLAIN, clip_norm=clip_norm)
    before = [parameter.detach().clone() for parameter in run.model.parameters()]
    run.trainer()._update([make_batch(CORPUS, np.arange(5))])
    moved = torch.stack([(a - b).detach().norm() for a, b in zip(before, run.model.parameters(), strict=True)]).norm()
    if clip_norm:
        assert float(moved) == pytest.approx(clip_norm, rel=1e-3)
    else:
        assert float(moved) > 0.1


def test_the_rate_follows_the_schedule(tmp_path: Path):
    run = make_run(tmp_path, max_steps=6, validate_every=1)
    run.trainer().run()
    rates = [p.learning_rate for p in run.watched if p.validation]
    assert rates == pytest.approx([0.0025, 0.005, 0.0075, 0.01, 0.01 * math.sqrt(4 / 5), 0.01 * math.sqrt(4 / 6)])


def test_what_is_validated_and_kept_is_the_average(tmp_path: Path):
    run = make_run(tmp_path, max_steps=4)
    run.trainer().run()
    checkpoint = CheckpointFolder(tmp_path / "checkpoints").load_newest()
    assert checkpoint is not None
    assert equal(run.kept[-1], dict(checkpoint.tensors["average"]))
    assert not equal(run.kept[-1], dict(checkpoint.tensors["model"]))
    assert equal(dict(run.model.named_parameters()), dict(checkpoint.tensors["model"]))


def test_the_seed_decides_on_everything(tmp_path: Path):
    ends: list[dict[str, Tensor]] = []
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        run = make_run(tmp_path / name, max_steps=NUM_STEPS, seed=seed)
        torch.manual_seed(len(name))
        run.trainer().run()
        ends.append(end_of(run))
    assert equal(ends[0], ends[1])
    assert not equal(ends[0], ends[2])


# ---------------------------------------------------------------------------------------------- non-finite


@pytest.mark.parametrize("kind", ["transformer-post", "rnnsearch"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_what_is_not_finite_stops_before_the_update(where: str, value: float, kind: str, tmp_path: Path):
    run = make_run(tmp_path, kind, validate_every=1, max_steps=NUM_STEPS)
    trainer = run.trainer()
    last: dict[str, Tensor] = {}

    def poison(module: torch.nn.Module, inputs: object, output: object) -> None:
        if module.training and len(run.validations) == 3:
            last.update({name: p.detach().clone() for name, p in run.model.named_parameters()})
            if where == "loss":
                output.features.mul_(value)  # type: ignore[attr-defined]
            else:
                run.model.output.weight.register_hook(lambda gradient: gradient * value)

    def widen(module: torch.nn.Module, inputs: object, output: object) -> object:
        if module.training and where == "loss":
            output.features.data = output.features.data.clone()  # type: ignore[attr-defined]
        return output

    run.model.register_forward_hook(widen)
    run.model.register_forward_hook(poison)
    with pytest.raises(NonFiniteError, match=r"step 4: .*nothing of this step was kept") as caught:
        trainer.run()
    assert caught.value.exit_code == 4
    assert equal(dict(run.model.named_parameters()), last)
    checkpoint = CheckpointFolder(tmp_path / "checkpoints").load_newest()
    assert checkpoint is not None
    assert checkpoint.step == 3
    for tensors in checkpoint.tensors.values():
        assert all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values())


# ------------------------------------------------------------------------------------------------- reports


def test_metrics_are_logged_line_by_line(tmp_path: Path):
    run = make_run(tmp_path, max_steps=8)
    run.trainer().run()
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text(encoding="utf-8").split("\n")[:-1]]
    assert [line["step"] for line in lines] == [4, 8]
    assert [line["scores"]["loss"] for line in lines] == [loss for _, loss in run.validations]
    assert all(line["sample"] == ["a", "b", "c"] for line in lines)
    assert all(line["tokens_per_second"] > 0 and line["seconds"] > 0 for line in lines)


def test_the_reported_loss_is_the_mean_over_tokens_since_the_last_report(tmp_path: Path):
    run = make_run(tmp_path, max_steps=4)
    losses: list[tuple[float, int]] = []

    def note(module: torch.nn.Module, inputs: object, output: object) -> None:
        if module.training:
            losses.append((float(output.total.detach()), int(output.num_units)))  # type: ignore[attr-defined]

    trainer = run.trainer()
    trainer._train_state.module.register_forward_hook(note)
    trainer.run()
    wanted = sum(total for total, _ in losses) / sum(num for _, num in losses)
    assert run.watched[-1].loss == pytest.approx(wanted, rel=1e-6)


def test_a_slow_run_reports_between_validations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("heedful.training.loop.REPORT_SECONDS", 0.0)
    monkeypatch.setattr("heedful.training.loop.CHECKPOINT_SECONDS", 0.0)
    run = make_run(tmp_path, max_steps=3, validate_every=100)
    run.trainer().run()
    assert [p.step for p in run.watched] == [1, 2, 3]
    assert [p.validation is None for p in run.watched] == [True, True, False]
    assert [p.done for p in run.watched] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"000002", "000003"}


# --------------------------------------------------------------------------------------------------- config


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_schedules_that_fall_to_zero_need_an_end(kind: str):
    schedule = {"schedule": {"kind": kind}}
    with pytest.raises(ValidationError, match=r"set a limit, such as training\.max_steps"):
        TrainingConfig.model_validate({"optimizer": schedule})
    assert TrainingConfig.model_validate({"optimizer": schedule, "max_steps": 10}).max_steps == 10


def test_seeds_have_room_for_the_step():
    assert make_config(seed=2**31 - 1).seed == 2**31 - 1
    with pytest.raises(ValidationError, match="seed"):
        make_config(seed=2**31)


def test_batches_reach_the_model_as_they_are(tmp_path: Path):
    batch: PairBatch = make_batch(CORPUS, np.arange(3))
    tensors = make_run(tmp_path).trainer()._train_state.tensors_of(batch)
    assert [tensor.numpy().tolist() for tensor in tensors] == [
        part.tolist() for part in (batch.source, batch.source_lengths, batch.target_in, batch.target_out)
    ]

"""Plans for devices on which a step takes a fixed time whatever its size, simulated by their two numbers."""

from dataclasses import replace
from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from heedful.runs.throughput_measurement import GROWTHS, MOST_STEPS, StepTime, _time_steps, measure_sizes
from heedful.tasks.landing import Course, plan_landing
from heedful.tasks.plan import WANTED_STEPS, WIDE_RATE, CorpusSize, adapt, plan_training
from heedful.tasks.throughput import BATCHES_AN_EPOCH, GROWTH, Throughput, fit_step_time
from tests.requests import load_experiment

MULTI30K = CorpusSize(29_000, 405_000, 430_000)
FIXED, SPEED = 0.083, 600_000.0
"""Seconds of launches in a step, and target tokens a second: a Transformer of base size on an H100, once."""


def gpu(minutes: float = 3.0, fixed: float = FIXED, most: float = inf) -> Throughput:
    return Throughput(60.0 * minutes, SPEED, 500.0, fixed, 0.9, most)


def test_two_numbers_are_found_again_in_noisy_times():
    for fixed, speed in ((0.083, 6e5), (0.002, 1e6), (0.0, 3_000.0)):
        noise = (1.02, 0.98, 1.01)
        steps = [
            (units, loud * (fixed + units / speed)) for units, loud in zip((1_500, 4_500, 12_000), noise, strict=True)
        ]
        found_fixed, per_unit = fit_step_time(steps)
        assert found_fixed == pytest.approx(fixed, rel=0.1, abs=0.05 * 12_000 / speed)
        assert 1.0 / per_unit == pytest.approx(speed, rel=0.35)
    # A size alone tells no fixed part, and neither do times that fall or rise faster than the size.
    assert fit_step_time([(1_000, 0.5)]) == (0.0, 0.0005)
    assert fit_step_time([(1_000, 0.01), (8_000, 0.09)])[0] == 0.0
    flat, per_unit = fit_step_time([(1_000, 0.05), (8_000, 0.049)])
    assert flat == pytest.approx(0.05, rel=0.05)
    assert 0.0 < per_unit < 0.05 / 8_000


def test_memory_ends_the_measurement():
    def measure(growth: int) -> StepTime:
        if growth > 3:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return StepTime(1_000.0 * growth, 0.1)

    steps, largest = measure_sizes(measure, GROWTHS)
    assert ([step.units for step in steps], largest) == ([1_000.0, 3_000.0], 3.0)
    assert measure_sizes(lambda growth: StepTime(growth, 1.0), GROWTHS)[1] == inf
    with pytest.raises(torch.OutOfMemoryError):
        measure_sizes(measure, (4, 8))


def test_batches_grow_until_launches_no_longer_matter():
    on_cpu = plan_training(MULTI30K, False, Throughput(180.0, 5_000.0, 30.0), optimizer="muon")
    on_gpu = plan_training(MULTI30K, False, gpu(), optimizer="muon")
    assert on_cpu.batch_tokens <= 1_856 < 8_192 <= on_gpu.batch_tokens <= GROWTH * 1_856
    assert on_gpu.batch_tokens <= MULTI30K.num_positions / BATCHES_AN_EPOCH
    # Half of a step or more is computation, or the batch has as many updates as it needs.
    step = FIXED + on_gpu.batch_tokens / SPEED
    num_steps = 0.8 * 180.0 / step
    assert num_steps >= 0.9 * WANTED_STEPS
    assert on_gpu.validate_every == pytest.approx(num_steps / 4, rel=0.1)
    assert on_gpu.num_epochs > 20
    # Where the fixed part is nothing, the plan is that of a CPU.
    without = plan_training(MULTI30K, False, replace(gpu(), step_seconds=0.0), optimizer="muon")
    assert without.batch_tokens == 1_792


def test_a_short_time_is_not_spent_on_few_large_steps():
    for seconds in (10.0, 30.0, 60.0, 180.0, 3_600.0):
        pace = gpu(seconds / 60.0)
        plan = plan_training(MULTI30K, False, pace, optimizer="muon")
        step = FIXED + plan.batch_tokens / SPEED
        # Batches of one position would bring a quarter more steps than this one at most.
        assert 0.8 * seconds / step >= min(WANTED_STEPS, 0.75 * 0.8 * seconds / FIXED)


def test_memory_bounds_the_batch():
    for most in (700.0, 5_000.0):
        assert plan_training(MULTI30K, False, gpu(most=most)).batch_tokens <= most
        assert plan_training(MULTI30K, False, gpu(0.0, most=most)).batch_tokens <= most


def test_the_rate_grows_with_the_root_of_the_batch():
    plan = plan_training(MULTI30K, True, gpu(30.0), optimizer="muon")
    assert plan.preset == "small"
    assert WIDE_RATE < plan.learning_rate <= 2.0 * WIDE_RATE
    by_hand = plan_training(MULTI30K, True, gpu(30.0), 4_096, "muon")
    assert (by_hand.batch_tokens, by_hand.learning_rate) == (4_096, WIDE_RATE)
    first = load_experiment("base", settings=("training.max_minutes=30",))
    by_corpus = load_experiment("base", settings=("training.max_minutes=30",), adapted=adapt(MULTI30K, first))
    for settings in ((), ("training.optimizer.learning_rate=0.004",)):
        given = load_experiment("base", settings=("training.max_minutes=30", *settings), adapted=adapt(MULTI30K, first))
        chosen = adapt(MULTI30K, by_corpus, gpu(30.0), is_named=True)
        limited = load_experiment("base", settings=("training.max_minutes=30", *settings), adapted=chosen)
        assert limited.training.batch_tokens > given.training.batch_tokens
        assert (limited.training.optimizer.learning_rate == 0.004) == bool(settings)


def test_a_training_without_a_limit_of_time_is_planned_for_its_device():
    usual = plan_training(MULTI30K)
    plan = plan_training(MULTI30K, pace=gpu(0.0))
    assert plan.batch_tokens > 4 * usual.batch_tokens
    assert plan.learning_rate == 2.0 * usual.learning_rate
    # Validations of a thousand items take a tenth of the time at most.
    step = FIXED + plan.batch_tokens * 405 / 430 / SPEED
    assert plan.validate_every * step >= 9 * 1_000 / 500.0 - step
    assert plan_training(MULTI30K, pace=Throughput(0.0, 5_000.0, 1e6)) == usual
    first = load_experiment()
    by_corpus = load_experiment(adapted=adapt(MULTI30K, first))
    training = load_experiment(adapted=adapt(MULTI30K, by_corpus, gpu(0.0))).training
    assert (training.batch_tokens, training.optimizer.kind) == (plan.batch_tokens, "adam")
    assert training.optimizer.learning_rate == plan.learning_rate


def test_items_of_other_tasks_are_planned_alike():
    course = Course((16, 64), 1_000, (3, 40))
    usual = plan_landing(course, 30_000, 600_000)
    pace = Throughput(60.0, 40_000.0, 500.0, 0.01)
    plan = plan_landing(course, 30_000, 600_000, pace=pace)
    assert (usual.batch_tokens, plan.batch_tokens) == (64 * 20, 400 * 20)
    assert plan.settings(1e-3, is_limited=False)["optimizer"]["learning_rate"] == 2e-3
    assert plan.num_epochs > usual.num_epochs
    limited = plan_landing(course, 30_000, 600_000, num_seen=pace.num_units, pace=pace)
    seconds = limited.validate_every * 10 * (0.01 + limited.batch_tokens / 20 / 40_000.0)
    assert seconds == pytest.approx(0.8 * 60.0, rel=0.1)
    # Of few items, an epoch remains many batches.
    few = plan_landing(course, 300, 6_000, pace=pace)
    assert few.batch_tokens == plan_landing(course, 300, 6_000).batch_tokens


class State:
    """A training state whose steps take simulated time."""

    def __init__(self, clock: list[float]) -> None:
        self.clock = clock
        self.seen = list[int]()

    def differentiate(self, batches: list[range], size: int) -> None:
        # The first steps of a shape compile, and record.
        self.clock[0] += (1.0 if self.seen.count(size) < 2 else 0.0) + FIXED + size / SPEED
        self.seen.append(size)

    def update(self, step: int, rate: float) -> None: ...

    def synchronize(self) -> None: ...


@pytest.mark.parametrize("is_repeated", [True, False])
def test_steps_are_timed_after_what_is_done_once(is_repeated: bool, monkeypatch: pytest.MonkeyPatch):
    clock = [0.0]
    monkeypatch.setattr("heedful.runs.throughput_measurement.time.monotonic", lambda: clock[0])
    batches = (SimpleNamespace(num_units=1_000 + number) for number in range(100))
    state: Any = State(clock)
    sampler: Any = batches
    measured = _time_steps(state, sampler, 2, 100.0, is_repeated)
    if is_repeated:
        assert measured.units == 2_001
        assert measured.seconds == pytest.approx(FIXED + 2_001 / SPEED)
    else:
        assert measured.units > 2_001  # each step has batches of its own, all but the first counted
        assert len({*state.seen}) == len(state.seen) == MOST_STEPS + 1

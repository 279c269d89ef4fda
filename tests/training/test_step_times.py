"""Times of the phases of a step: they add up, first steps do not count, products are those that were computed."""

import re

import pytest
import torch

from heedful.training.step_times import NOT_TIMED, WARM_STEPS, Product, StepTimes, seconds_alone

CPU = torch.device("cpu")


class Clock:
    """Seconds that pass when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("heedful.training.step_times.time.perf_counter", lambda: self.now)


def take_step(times: StepTimes, clock: Clock, milliseconds: float, num_tokens: int = 100) -> None:
    weight = torch.ones(3, 2, requires_grad=True)
    clock.now += milliseconds / 1000
    times.mark("batch preparation")
    with times.step(num_tokens, CPU):
        loss = (torch.ones(5, 3) @ weight).sum()
        clock.now += 2 * milliseconds / 1000
        times.mark("forward")
        loss.backward()
        clock.now += 5 * milliseconds / 1000
        times.mark("backward")
        clock.now += 2 * milliseconds / 1000
        times.mark("optimizer")


def cells(line: str) -> tuple[str, float, float]:
    found = re.fullmatch(r"  (.*?) {2,}([\d.,]+) (ms|s) +([\d.]+) %", line)
    assert found is not None, line
    return found[1], float(found[2].replace(",", "")) / (1 if found[3] == "ms" else 0.001), float(found[4])


def test_the_table_holds_what_was_measured(monkeypatch: pytest.MonkeyPatch):
    clock, said = Clock(monkeypatch), list[str]()
    monkeypatch.setattr("heedful.training.step_times.seconds_alone", lambda product, device: 0.001)
    times = StepTimes(said.append, counted_steps=4)
    clock.now += 7.0
    times.start()
    for _ in range(WARM_STEPS):
        take_step(times, clock, 1000.0, num_tokens=50)
    assert said == []
    for _ in range(6):
        take_step(times, clock, 1.0)
    assert said[0] == "where a step's time goes (4 steps of 100 target tokens)"
    assert [cells(line) for line in said[1:6]] == [
        ("batch preparation", 1.0, 10.0), ("forward", 2.0, 20.0), ("backward", 5.0, 50.0), ("optimizer", 2.0, 20.0),
        ("a step", 10.0, 100.0),
    ]  # fmt: skip
    # One product forward and one backward, in a step of half as many tokens.
    assert cells(said[6]) == ("2 matrix products alone, the floor", 4.0, 40.0)
    assert len(said) == 7


def test_the_end_tells_validation_and_checkpoints(monkeypatch: pytest.MonkeyPatch):
    clock, said = Clock(monkeypatch), list[str]()
    times = StepTimes(said.append)
    times.start()
    take_step(times, clock, 10.0)
    clock.now += 0.2
    times.mark("validation")
    clock.now += 0.1
    times.mark("checkpoints")
    times.end()
    assert [cells(line) for line in said[1:]] == [
        ("steps", 100.0, 25.0), ("validation", 200.0, 50.0), ("checkpoints", 100.0, 25.0),
    ]  # fmt: skip


def test_a_short_training_has_a_table_of_what_it_had(monkeypatch: pytest.MonkeyPatch):
    clock, said = Clock(monkeypatch), list[str]()
    times = StepTimes(said.append)
    times.start()
    for _ in range(WARM_STEPS + 2):
        take_step(times, clock, 10.0)
    times.end()
    assert said[0] == "where a step's time goes (2 steps of 100 target tokens)"


def test_nothing_is_done_unless_asked(monkeypatch: pytest.MonkeyPatch):
    def never() -> float:
        raise AssertionError

    clock = Clock(monkeypatch)
    monkeypatch.setattr("heedful.training.step_times.time.perf_counter", never)
    for _ in range(WARM_STEPS + 2):
        take_step(NOT_TIMED, clock, 1.0)
    NOT_TIMED.end()


@pytest.mark.parametrize("product", [Product(0, 5, 3, 2, torch.float32), Product(4, 5, 3, 2, torch.bfloat16)])
def test_a_product_takes_time(product: Product):
    assert 0.0 < seconds_alone(product, CPU) < 1.0

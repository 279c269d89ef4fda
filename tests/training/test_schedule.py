import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.training.schedule import ScheduleConfig, rate_factor

KINDS = ("inverse_sqrt", "linear", "cosine", "halving", "constant")


@pytest.mark.parametrize(
    ("size", "step", "rate"),
    [
        (512, 1, 1.746928e-7),
        (512, 1000, 1.746928e-4),
        (512, 4000, 6.987712e-4),
        (512, 8000, 4.941059e-4),
        (512, 100_000, 1.397542e-4),
        (1024, 4000, 4.941059e-4),
        (1024, 300_000, 5.705443e-5),
    ],
)
def test_the_rates_of_the_transformer_paper(size: int, step: int, rate: float):
    peak = size**-0.5 * 4000**-0.5
    assert peak * rate_factor(ScheduleConfig(warmup_steps=4000), step, 0) == pytest.approx(rate, rel=5e-7)


@given(kind=st.sampled_from(KINDS), warmup=st.integers(0, 50), step=st.integers(1, 200))
def test_factors_rise_to_the_peak_and_never_beyond(kind: str, warmup: int, step: int):
    config = ScheduleConfig.model_validate({"kind": kind, "warmup_steps": warmup, "halve_after": 60, "halve_every": 10})
    factor = rate_factor(config, step, 200)
    assert 0.0 <= factor <= 1.0
    if step < warmup:
        assert factor == step / warmup
    else:
        assert factor >= rate_factor(config, step + 1, 200)


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_falling_to_zero_at_the_last_step(kind: str):
    config = ScheduleConfig.model_validate({"kind": kind, "warmup_steps": 20})
    assert rate_factor(config, 20, 100) == 1.0
    assert rate_factor(config, 60, 100) == pytest.approx(0.5)
    assert rate_factor(config, 100, 100) == pytest.approx(0.0)
    assert rate_factor(config, 130, 100) == pytest.approx(0.0)
    third = {"linear": 0.75, "cosine": 0.5 * (1 + math.cos(math.pi / 4))}
    assert rate_factor(config, 40, 100) == pytest.approx(third[kind])


def test_halving():
    config = ScheduleConfig(kind="halving", warmup_steps=0, halve_after=100, halve_every=20)
    factors = [rate_factor(config, step, 0) for step in (1, 100, 101, 120, 121, 141)]
    assert factors == [1.0, 1.0, 0.5, 0.5, 0.25, 0.125]


def test_constant_stays():
    config = ScheduleConfig(kind="constant", warmup_steps=0)
    assert {rate_factor(config, step, 0) for step in (1, 10, 10**6)} == {1.0}

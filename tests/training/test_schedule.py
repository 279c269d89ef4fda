import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UsageError
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
    quarter = {"linear": 0.75, "cosine": 0.5 * (1 + math.cos(math.pi / 4))}
    assert rate_factor(config, 40, 100) == pytest.approx(quarter[kind])


@pytest.mark.parametrize("kind", ["linear", "cosine"])
def test_falling_to_zero_by_the_share_that_is_done_where_no_last_step_is_known(kind: str):
    config = ScheduleConfig.model_validate({"kind": kind, "warmup_steps": 20})
    factors = [rate_factor(config, 1000, 0, share=share) for share in (0.0, 0.25, 0.5, 1.0)]
    quarter = {"linear": 0.75, "cosine": 0.5 * (1 + math.cos(math.pi / 4))}
    assert factors == pytest.approx([1.0, quarter[kind], 0.5, 0.0])
    assert rate_factor(config, 10, 0, share=0.9) == 0.5
    assert rate_factor(config, 60, 100, share=0.6) == rate_factor(config, 60, 100)
    # Another limit is nearer than the last step.
    assert rate_factor(config, 60, 100, share=0.9) == rate_factor(config, 90, 100)
    assert rate_factor(config, 60, 1000, share=1.0) == pytest.approx(0.0)


def test_halving():
    config = ScheduleConfig(kind="halving", warmup_steps=0, halve_after=100, halve_every=20)
    factors = [rate_factor(config, step, 0) for step in (1, 100, 101, 120, 121, 141)]
    assert factors == [1.0, 1.0, 0.5, 0.5, 0.25, 0.125]


def halved(after: float, every: float, epoch: float) -> float:
    config = ScheduleConfig(kind="halving", warmup_steps=0, halve_after=after, halve_every=every, halve_in="epochs")
    return rate_factor(config, 7, 0, epoch)


def test_halving_every_epoch_as_luong_et_al():
    # Ten epochs: five at the full rate, then each at half of the one before; with dropout twelve, eight of them full.
    assert [halved(5, 1, epoch + 0.5) for epoch in range(10)] == [1.0] * 5 + [0.5, 0.25, 0.125, 0.0625, 0.03125]
    assert [halved(8, 1, epoch + 0.99) for epoch in range(12)] == [1.0] * 8 + [0.5, 0.25, 0.125, 0.0625]
    assert [halved(5, 1, epoch) for epoch in (0.0, 4.999, 5.0, 5.999, 6.0)] == [1.0, 1.0, 0.5, 0.5, 0.25]


def test_halving_every_half_epoch_as_sutskever_et_al():
    epochs = (4.9, 5.0, 5.4, 5.5, 5.9, 6.0, 6.5, 7.0, 7.4)
    assert [halved(5, 0.5, epoch) for epoch in epochs] == [1, 0.5, 0.5, 0.25, 0.25, 2**-3, 2**-4, 2**-5, 2**-5]


def test_epochs_that_are_counted_must_be_given():
    config = ScheduleConfig(kind="halving", warmup_steps=0, halve_in="epochs")
    with pytest.raises(UsageError, match="counts epochs"):
        rate_factor(config, 7, 0)


def test_constant_stays():
    config = ScheduleConfig(kind="constant", warmup_steps=0)
    assert {rate_factor(config, step, 0) for step in (1, 10, 10**6)} == {1.0}

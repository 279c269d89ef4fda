import pytest
import torch

from heedful.layers.dropout import dropout


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9])
def test_the_rate_and_the_expectation(probability: float):
    torch.manual_seed(1)
    num = 200_000
    dropped = dropout(torch.ones(num), probability, training=True)
    spread = (probability * (1 - probability) / num) ** 0.5
    assert float((dropped == 0.0).double().mean()) == pytest.approx(probability, abs=5 * spread)
    kept = dropped[dropped != 0.0]
    assert float((kept - kept[0]).abs().max()) == 0.0
    # The scale fits the probability as rounded to 16 bits, so the expectation is exact.
    rounded = round(probability * 65536) / 65536
    assert float(kept[0]) == pytest.approx(1.0 / (1.0 - rounded), rel=1e-6)
    assert float(dropped.mean()) == pytest.approx(1.0, abs=5 * spread / (1 - probability))


def test_decisions_are_independent_of_their_neighbours():
    # Four decisions come from one draw; a run of two must be left out as often as chance says, whatever the distance.
    torch.manual_seed(2)
    left_out = (dropout(torch.ones(400_000), 0.25, training=True) == 0.0).double()
    for distance in range(1, 9):
        both = float((left_out[distance:] * left_out[:-distance]).mean())
        assert both == pytest.approx(0.0625, abs=0.002)


def test_the_same_seed_leaves_out_the_same():
    vectors = torch.randn(7, 11)
    results: list[torch.Tensor] = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        results.append(dropout(vectors, 0.5, training=True))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_gradients_pass_where_the_values_did():
    torch.manual_seed(0)
    vectors = torch.randn(50, 3, requires_grad=True)
    dropped = dropout(vectors, 0.4, training=True)
    (gradient,) = torch.autograd.grad(dropped.sum(), vectors)
    assert torch.equal(gradient * vectors, dropped)
    assert bool((gradient == 0.0).any())


@pytest.mark.parametrize(("probability", "training"), [(0.5, False), (0.0, True)])
def test_nothing_is_done_where_nothing_is_to_do(probability: float, training: bool):
    vectors = torch.randn(3, 4)
    state = torch.random.get_rng_state()
    assert dropout(vectors, probability, training) is vectors
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 0), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_any_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype):
    dropped = dropout(torch.ones(shape, dtype=dtype), 0.5, training=True)
    assert (dropped.shape, dropped.dtype) == (torch.Size(shape), dtype)
    assert set(dropped.flatten().tolist()) <= {0.0, 2.0}


def test_vectors_in_any_layout():
    vectors = torch.arange(1.0, 13.0).reshape(3, 4).T
    torch.manual_seed(0)
    dropped = dropout(vectors, 0.5, training=True)
    assert bool(((dropped == 0.0) | (dropped == 2 * vectors)).all())


@pytest.mark.parametrize("probability", [1e-9, 1.0 - 1e-9])
def test_probabilities_that_round_to_none_or_all(probability: float):
    torch.manual_seed(0)
    dropped = dropout(torch.ones(1000), probability, training=True)
    assert bool(torch.isfinite(dropped).all())
    assert float((dropped == 0.0).double().mean()) == pytest.approx(probability, abs=0.01)

"""The table of normalizers, and what each of them says of itself."""

from dataclasses import fields, is_dataclass

import pytest
import torch

from heedful.attention.interface import Normalizer
from heedful.attention.normalizers import NORMALIZERS
from tests.attention.cases import make_normalizer


def draw(num_queries: int = 3, num_keys: int = 4, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(num_queries)
    return torch.randn(2, num_queries, num_keys, generator=generator, dtype=torch.float64).to(dtype)


ALLOWED = torch.tensor([[True, True, False, True], [True, False, True, True], [True, True, True, True]])


@pytest.mark.parametrize("name", NORMALIZERS)
def test_all_can_be_made_without_arguments_and_are_values(name: str):
    made = NORMALIZERS[name]()
    assert isinstance(made, Normalizer)
    assert is_dataclass(made)
    assert made.inverse_temperature == 1.0
    with pytest.raises(AttributeError):
        made.seed = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NORMALIZERS)
def test_weigh_gives_the_weights_of_normalize(name: str):
    made = make_normalizer(name)
    for allowed in (None, ALLOWED):
        assert torch.equal(made.weigh(draw(), allowed), made.normalize(draw(), allowed).weights)


@pytest.mark.parametrize("name", NORMALIZERS)
def test_summaries_are_there_if_promised(name: str):
    made = make_normalizer(name)
    found = made.normalize(draw(), ALLOWED)
    for need in ("log_normalizer", "log_prob"):
        assert (getattr(found, need) is not None) == (need in made.provides)
    assert {"weights", "argmax"} <= made.provides


@pytest.mark.parametrize("name", NORMALIZERS)
def test_temperature_is_folded_into_scores(name: str):
    if "temperature" in {field.name for field in fields(NORMALIZERS[name])}:  # type: ignore[arg-type]
        assert NORMALIZERS[name](temperature=0.25).inverse_temperature == 4.0  # type: ignore[call-arg]


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_number_added_to_a_row_changes_nothing_if_promised(name: str):
    made = make_normalizer(name)
    levels = torch.tensor([[3.0], [-2.0], [0.5]], dtype=torch.float64)
    low, high = (made.weigh(scores, None) for scores in (draw(), draw() + levels))
    assert torch.allclose(low, high, rtol=0, atol=1e-12) == made.is_shift_invariant


@pytest.mark.parametrize("name", NORMALIZERS)
def test_the_order_of_keys_counts_if_said(name: str):
    made, order = make_normalizer(name), torch.tensor([2, 0, 3, 1])
    same = torch.allclose(
        made.weigh(draw()[..., order], None), made.weigh(draw(), None)[..., order], rtol=0, atol=1e-12
    )
    assert same == (not made.is_positional and not made.is_random)


@pytest.mark.parametrize("name", NORMALIZERS)
def test_the_rows_see_each_other_if_said(name: str):
    made, scores = make_normalizer(name), draw()
    other = scores.clone()
    other[..., 0, :2] -= 9.0
    other[..., 0, 2] += 1.0
    same = torch.equal(made.weigh(scores, None)[..., 1:, :], made.weigh(other, None)[..., 1:, :])
    assert same == (made.scope == "row")


@pytest.mark.parametrize("name", NORMALIZERS)
def test_noise_comes_from_the_numbers_of_rows_if_said(name: str):
    made, rows = make_normalizer(name), torch.arange(6).reshape(2, 3)
    # Sampled from flat scores, other numbers give other keys.
    flat = 0.1 * draw()
    same = torch.equal(made.weigh(flat, None, rows), made.weigh(flat, None, rows + 1000))
    assert same == (not made.is_random)
    if made.scope == "row":
        tile = made.weigh(flat[:, 1:], None, rows[:, 1:])
        # Other noise would differ by much more than the rounding of vectors of another length.
        torch.testing.assert_close(tile, made.weigh(flat, None, rows)[:, 1:], rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("name", NORMALIZERS)
def test_a_seed_once_drawn_stays(name: str):
    if not NORMALIZERS[name].is_random:
        assert NORMALIZERS[name]().seeded().__class__ is NORMALIZERS[name]
        return
    made = NORMALIZERS[name]().seeded()
    assert torch.equal(made.weigh(draw(), None), made.weigh(draw(), None))
    assert made.seeded() is made


@pytest.mark.parametrize("name", NORMALIZERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_have_the_type_of_the_scores(name: str, dtype: torch.dtype):
    weights = NORMALIZERS[name]().weigh(draw(dtype=dtype), ALLOWED)
    assert weights.dtype == dtype
    assert bool(torch.isfinite(weights).all())

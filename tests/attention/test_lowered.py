"""Pairs: what a kernel may do with them without knowing their kind."""

import pytest
import torch
from torch import Tensor

from heedful.attention.kernels.plain import PlainScores
from heedful.attention.lowered import (
    GivenScores,
    LoweredAdditive,
    LoweredDistance,
    LoweredDot,
    LoweredScore,
    broadcast,
    product,
)


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64)


def matches(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.mT


QUERY, KEY = draw(2, 3, 4), draw(2, 5, 4)
PAIRS: dict[str, LoweredScore] = {
    "dot": LoweredDot(QUERY, KEY),
    "scaled dot": LoweredDot(QUERY, KEY, 0.5),
    "additive": LoweredAdditive(QUERY, KEY, draw(4)),
    "distance": LoweredDistance(QUERY, KEY, torch.tensor(2.0).double(), "gaussian", torch.tensor(0.5).double()),
    "given": GivenScores(QUERY, KEY, matches, 0.5),
}


def scores(pairs: LoweredScore) -> Tensor:
    return PlainScores().scores(pairs)[0]


@pytest.mark.parametrize("name", PAIRS)
def test_a_part_of_the_queries(name: str):
    whole = scores(PAIRS[name])
    for part in (slice(0, 2), slice(2, 3), slice(1, 1)):
        torch.testing.assert_close(scores(PAIRS[name].of_queries(part)), whole[:, part])


@pytest.mark.parametrize("name", PAIRS)
def test_keys_of_its_own_for_each_query(name: str):
    places = torch.tensor([[0, 4], [1, 2], [3, 3]])
    near = KEY[:, places]  # [2, 3, 2, 4]
    given = scores(PAIRS[name].with_own_keys(near))
    assert given.shape == (2, 3, 1, 2)
    torch.testing.assert_close(given.squeeze(-2), scores(PAIRS[name]).gather(-1, places.expand(2, 3, 2)))


@pytest.mark.parametrize("name", PAIRS)
def test_leading_axes_are_those_of_both(name: str):
    wide = PAIRS[name].with_own_keys(draw(6, 1, 3, 2, 4))
    assert wide.leading == (6, 2, 3)
    assert PAIRS[name].leading == (2,)


@pytest.mark.parametrize("name", PAIRS)
def test_a_folded_factor_changes_no_score(name: str):
    folded = PAIRS[name].folded()
    torch.testing.assert_close(scores(folded), scores(PAIRS[name]))
    assert getattr(folded, "scale", 1.0) == 1.0


def test_a_scale_multiplies_the_scores():
    torch.testing.assert_close(scores(PAIRS["scaled dot"]), 0.5 * scores(PAIRS["dot"]))


def test_what_may_receive_gradient():
    for name, pairs in PAIRS.items():
        own = {id(value) for value in vars(pairs).values() if isinstance(value, Tensor)}
        assert {id(tensor) for tensor in pairs.tensors()} == own, name
    assert len(LoweredDistance(QUERY, KEY, torch.tensor(1.0), "boxcar").tensors()) == 3


def test_exponentials_made_beforehand_belong_to_all_keys_and_are_left_behind():
    pairs = PAIRS["additive"]
    assert isinstance(pairs, LoweredAdditive)
    marked = LoweredAdditive(pairs.query, pairs.key, pairs.vector, "made")  # type: ignore[arg-type]
    assert marked.of_queries(slice(0, 1)).exp_key == "made"
    assert marked.with_own_keys(KEY[:, torch.zeros(3, 2, dtype=torch.int64)]).exp_key is None


def test_the_common_shape():
    assert broadcast(torch.Size((2, 3)), torch.Size((2, 3))) == (2, 3)
    assert broadcast(torch.Size((2, 1)), torch.Size((3,)), torch.Size(())) == (2, 3)
    with pytest.raises(RuntimeError):
        broadcast(torch.Size((2,)), torch.Size((3,)))


@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (2, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((2, 2, 3, 4), (4, 5))]
)
def test_products_are_those_of_matrices(shapes: tuple[tuple[int, ...], tuple[int, ...]]):
    first, second = (draw(*shape) for shape in shapes)
    assert torch.equal(product(first, second), first @ second)

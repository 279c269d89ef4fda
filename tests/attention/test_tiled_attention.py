"""The driver: when it goes by tiles, that nothing changes by it, and what it keeps."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor

from heedful.attention import tiled_attention as tiled
from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Normalizer
from heedful.attention.masks import causal, local_predictive, window
from heedful.attention.scores import Dot
from heedful.attention.stochastic import Sampled
from heedful.attention.structured import ProjectiveTree
from tests.attention.cases import make_case, make_normalizer


class Counted:
    """A score function that remembers how many queries it was asked about at once."""

    def __init__(self) -> None:
        self.queries: list[int] = []

    def __call__(self, query: Tensor, key: Tensor) -> Tensor:
        self.queries.append(query.shape[-2])
        return query @ key.mT


@contextmanager
def sizes(monkeypatch: pytest.MonkeyPatch, whole: int, tile: int) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(tiled, "WHOLE", whole)
        patch.setattr(tiled, "TILE", tile)
        yield


def inputs(num_queries: int = 7, num_keys: int = 5, leading: tuple[int, ...] = (2,)) -> tuple[Tensor, Tensor, Tensor]:
    case = make_case("dot", "none", leading, num_queries, num_keys)
    return case.inputs


def test_up_to_a_size_all_queries_are_one_tile_and_are_scored_once(monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs()
    counted = Counted()
    with sizes(monkeypatch, 2 * 7 * 5, 1):
        attend(query.requires_grad_(), key, value, score=counted).context.sum().backward()
    assert counted.queries == [7]


@pytest.mark.parametrize(("tile", "rows"), [(20, [2, 2, 2, 1]), (39, [3, 3, 1]), (1, [1] * 7), (10**6, [7])])
def test_beyond_it_a_tile_holds_so_many_numbers_or_one_query(
    tile: int, rows: list[int], monkeypatch: pytest.MonkeyPatch
):
    query, key, value = inputs()
    counted = Counted()
    with sizes(monkeypatch, 2 * 7 * 5 - 1, tile), torch.no_grad():
        attend(query, key, value, score=counted)
    assert counted.queries == rows


def test_going_back_scores_are_made_again_tile_by_tile(monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs()
    counted = Counted()
    with sizes(monkeypatch, 0, 39):
        context = attend(query.requires_grad_(), key, value, score=counted).context
        assert counted.queries == [3, 3, 1]
        context.sum().backward()
    assert sorted(counted.queries) == [1, 1, 3, 3, 3, 3]


def test_without_gradient_nothing_is_kept_to_be_made_again(monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs()
    with sizes(monkeypatch, 0, 39):
        assert attend(query, key, value, score=Counted()).context.grad_fn is None


def test_a_tree_is_one_tile_whatever_its_size(monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs(4, 5)
    counted = Counted()
    with sizes(monkeypatch, 0, 1):
        attend(query, key, value, score=counted, normalizer=ProjectiveTree())
    assert counted.queries == [4]


def test_dropout_is_the_same_when_made_again(monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs(6, 5)
    value = torch.eye(5, dtype=torch.float64).repeat(2, 1, 1).requires_grad_()
    with sizes(monkeypatch, 0, 20):
        torch.manual_seed(2)
        context = attend(query.requires_grad_(), key, value, score=Dot(4, 4), dropout=0.5, kernel="plain").context
        torch.rand(3)
        (gradient,) = torch.autograd.grad(context.sum(), value)
    # With unit vectors as values the context is the dropped weights, and so is the gradient of its sum, over queries.
    torch.testing.assert_close(gradient, context.detach().sum(dim=-2)[..., None].expand(2, 5, 5))
    assert bool((context == 0.0).any())


def test_every_tile_drops_other_weights_and_only_one_number_is_drawn(monkeypatch: pytest.MonkeyPatch):
    query, key = torch.zeros(6, 4, requires_grad=True), torch.zeros(40, 4)
    with sizes(monkeypatch, 0, 80):
        torch.manual_seed(2)
        context = attend(query, key, torch.eye(40), score=Dot(4, 4), dropout=0.5, kernel="plain").context
        after = torch.rand(1)
    tiles = context.detach().reshape(3, -1) == 0.0
    assert len({tuple(tile.tolist()) for tile in tiles}) == 3
    torch.manual_seed(2)
    torch.randint(1 << 62, ())
    assert torch.equal(after, torch.rand(1))


@pytest.mark.parametrize("name", ["sampled", "gumbel_softmax", "straight_through"])
def test_noise_of_one_seed_is_the_same_in_tiles(name: str, monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs(9, 5, (2, 3))
    normalizer = make_normalizer(name)

    def drawn() -> Attended:
        return attend(query, key, value, score=Dot(4, 4), normalizer=normalizer, need=["weights"])

    whole = drawn()
    for tile in (1, 100):
        with sizes(monkeypatch, 0, tile):
            assert torch.equal(drawn().weights, whole.weights)  # type: ignore[arg-type]


def test_without_a_seed_one_call_has_one_noise_in_all_its_tiles(monkeypatch: pytest.MonkeyPatch):
    query = torch.zeros(400, 4, dtype=torch.float64, requires_grad=True)
    key, value = torch.zeros(5, 4).double(), torch.eye(5).double()
    with sizes(monkeypatch, 0, 100):
        one, other = (attend(query, key, value, score=Dot(4, 4), normalizer=Sampled(), need=["log_prob"]) for _ in "ab")
        # What was drawn is drawn again going back: every log_prob has the slope of its own key.
        assert one.log_prob is not None
        (gradient,) = torch.autograd.grad(one.log_prob.sum(), query)
    assert not torch.equal(one.context, other.context)
    # Tiles differ from each other, or more than a fifth of the rows would agree with the next tile's.
    tiles = one.context.detach().reshape(-1, 20, 5)
    assert 0.1 < float((tiles[:-1] * tiles[1:]).sum(dim=-1).mean()) < 0.3
    assert not gradient.any()  # all keys are zero


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_many_tiles_lose_nothing_in_half_precision(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch):
    # A thousand tiles: in bfloat16 the sum would stop at 256 times what each adds.
    query, key = torch.zeros(1000, 2, dtype=dtype), torch.zeros(3, 2, dtype=dtype, requires_grad=True)
    value = torch.zeros(3, 2, dtype=dtype, requires_grad=True)
    for mask in (None, window(999, 999) & local_predictive(torch.ones(1), 1, 1e9)):
        with sizes(monkeypatch, 0, 1):
            context = attend(query, key, value, score=Dot(2, 2), mask=mask, kernel="plain").context
        (gradient,) = torch.autograd.grad(context, value, torch.ones_like(context))
        assert gradient.dtype == dtype
        torch.testing.assert_close(gradient.double(), torch.full((3, 2), 1000 / 3).double(), rtol=0.01, atol=0)


@pytest.mark.parametrize("mask", [causal(), local_predictive(torch.tensor([1.4]), 2, over="source")])
def test_several_calls_can_be_open_at_once(mask: object, monkeypatch: pytest.MonkeyPatch):
    query, key, value = inputs()
    normalizer: Normalizer = make_normalizer("softmax")
    leaf = query.clone().requires_grad_()
    with sizes(monkeypatch, 0, 20):
        first = attend(leaf, key, value, score=Dot(4, 4), mask=mask, normalizer=normalizer, kernel="plain").context  # type: ignore[arg-type]
        second = attend(first @ torch.ones(3, 4).double(), key, value, score=Dot(4, 4), kernel="plain").context
        (tiles,) = torch.autograd.grad(second.sum(), leaf)
    first = attend(leaf, key, value, score=Dot(4, 4), mask=mask, normalizer=normalizer, kernel="plain").context  # type: ignore[arg-type]
    second = attend(first @ torch.ones(3, 4).double(), key, value, score=Dot(4, 4), kernel="plain").context
    torch.testing.assert_close(tiles, torch.autograd.grad(second.sum(), leaf)[0])

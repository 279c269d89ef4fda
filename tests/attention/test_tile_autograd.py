"""Tile by tile: all queries in order, gradients of everything that is seen or hidden, and one node of the graph."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended
from heedful.attention.kernels.interface import Request
from heedful.attention.lowered import GivenScores, LoweredDot
from heedful.attention.mask_bounds import Gaussian, MaskBounds
from heedful.attention.softmax import Softmax
from heedful.attention.tile_autograd import in_tiles, join
from tests.thorough import thorough

NUM_QUERIES = 7


def request(dropout: float = 0.0) -> Request:
    return Request(LoweredDot, torch.float64, "cpu", NUM_QUERIES, 4, dropout=dropout)


def inputs() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(3)
    tensors = {
        "query": torch.randn(2, NUM_QUERIES, 3, generator=generator).double(),
        "key": torch.randn(2, 4, 3, generator=generator).double(),
        "value": torch.randn(2, 4, 2, generator=generator).double(),
        "centre": torch.rand(2, NUM_QUERIES, generator=generator).double() * 4,
        "temperature": torch.tensor(1.3).double(),
    }
    return {name: tensor.requires_grad_() for name, tensor in tensors.items()}


def operands_of(tensors: dict[str, Tensor]) -> AttentionInputs:
    start, stop = torch.zeros(NUM_QUERIES, dtype=torch.int64), torch.full((NUM_QUERIES,), 4)
    rows = MaskBounds(start, stop, gaussian=Gaussian(tensors["centre"], 1.5))
    pairs = LoweredDot(tensors["query"], tensors["key"])
    return AttentionInputs(pairs, tensors["value"], rows, Softmax(tensors["temperature"]))


def compute(tile: AttentionInputs) -> Attended:
    """Attention written out, with a result of each kind."""
    assert tile.rows is not None
    assert tile.rows.gaussian is not None
    scores = tile.pairs.query @ tile.pairs.key.mT * tile.normalizer.inverse_temperature
    weights = scores.softmax(dim=-1) * tile.rows.gaussian.factors(torch.arange(4), 1)
    return Attended(
        weights @ tile.value,
        "compute",
        weights=weights,
        log_normalizer=scores.logsumexp(dim=-1),
        argmax=weights.argmax(dim=-1),
    )


def loss(attended: Attended) -> Tensor:
    assert attended.weights is not None
    assert attended.log_normalizer is not None
    return attended.context.square().sum() + attended.weights.pow(3).sum() + attended.log_normalizer.sin().sum()


@pytest.mark.parametrize("num_rows", [1, 3, 7, 100])
def test_results_and_gradients_are_those_of_one_piece(num_rows: int):
    tensors = inputs()
    tiles, whole = in_tiles(compute, operands_of(tensors), request(), num_rows), compute(operands_of(tensors))
    assert tiles.kernel == "compute"
    assert tiles.argmax is not None
    assert not tiles.argmax.requires_grad
    for name in ("context", "weights", "log_normalizer", "argmax"):
        torch.testing.assert_close(getattr(tiles, name), getattr(whole, name))
    ours, wanted = (torch.autograd.grad(loss(attended), tensors.values()) for attended in (tiles, whole))
    for name, gradient, other in zip(tensors, ours, wanted, strict=True):
        torch.testing.assert_close(gradient, other, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("name", ["query", "key", "value", "centre", "temperature"])
def test_one_tensor_alone_may_have_a_gradient(name: str):
    tensors = {each: tensor.detach().requires_grad_(each == name) for each, tensor in inputs().items()}
    (gradient,) = torch.autograd.grad(loss(in_tiles(compute, operands_of(tensors), request(), 3)), tensors[name])
    (wanted,) = torch.autograd.grad(loss(compute(operands_of(tensors))), tensors[name])
    torch.testing.assert_close(gradient, wanted)


def test_one_tensor_in_two_places_gets_both_gradients():
    key = inputs()["key"]

    def attended(run: Callable[[AttentionInputs], Attended]) -> Tensor:
        tensors = {**inputs(), "key": key, "value": key}
        return torch.autograd.grad(run(operands_of(tensors)).context.square().sum(), key)[0]

    torch.testing.assert_close(attended(lambda tile: in_tiles(compute, tile, request(), 3)), attended(compute))


def test_a_result_that_no_loss_depends_on_changes_nothing():
    tensors = inputs()
    attended = in_tiles(compute, operands_of(tensors), request(), 3)
    (gradient,) = torch.autograd.grad(attended.context.sum(), tensors["value"])
    (wanted,) = torch.autograd.grad(compute(operands_of(tensors)).context.sum(), tensors["value"])
    torch.testing.assert_close(gradient, wanted)


@thorough
def test_gradients_of_gradients():
    def function(*tensors: Tensor) -> Tensor:
        given = dict(zip(inputs(), tensors, strict=True))
        return loss(in_tiles(compute, operands_of(given), request(), 3))

    assert torch.autograd.gradgradcheck(function, tuple(inputs().values()))


def test_what_a_function_holds_gets_its_gradient():
    tensors, held = inputs(), torch.randn(3, 3, dtype=torch.float64, requires_grad=True)

    def hidden(tile: AttentionInputs) -> Attended:
        assert isinstance(tile.pairs, GivenScores)
        return Attended(tile.pairs.function(tile.pairs.query, tile.pairs.key).softmax(dim=-1) @ tile.value, "hidden")

    pairs = GivenScores(tensors["query"], tensors["key"], lambda query, key: query @ held @ key.mT)
    operands = AttentionInputs(pairs, tensors["value"], None, Softmax())
    ours, wanted = (
        torch.autograd.grad(attended.context.square().sum(), (held, tensors["query"]))
        for attended in (in_tiles(hidden, operands, request(), 3), hidden(operands))
    )
    for gradient, other in zip(ours, wanted, strict=True):
        torch.testing.assert_close(gradient, other)


def test_the_graph_has_one_node_and_keeps_what_was_given():
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    tensors = inputs()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        context = in_tiles(compute, operands_of(tensors), request(), 1).context
    assert {id(tensor) for tensor in tensors.values()} <= {id(tensor) for tensor in kept}
    assert len(kept) <= len(tensors) + 2  # start and stop
    assert context.grad_fn is not None
    assert {type(node).__name__ for node, _ in context.grad_fn.next_functions if node} == {"AccumulateGrad"}


def test_an_input_changed_meanwhile_is_noticed():
    tensors = inputs()
    context = in_tiles(compute, operands_of(tensors), request(), 3).context
    with torch.no_grad():
        tensors["key"].add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        context.sum().backward()


def test_without_gradients_there_is_no_graph():
    tensors = {name: tensor.detach() for name, tensor in inputs().items()}
    assert in_tiles(compute, operands_of(tensors), request(), 3).context.grad_fn is None
    with torch.no_grad():
        assert in_tiles(compute, operands_of(inputs()), request(), 3).context.grad_fn is None


def test_mixed_precision_is_that_of_the_call():
    seen: list[torch.dtype] = []

    def mixed(tile: AttentionInputs) -> Attended:
        scores = tile.pairs.query.float() @ tile.pairs.key.float().mT
        seen.append(scores.dtype)
        return Attended(scores.softmax(dim=-1) @ tile.value.float(), "mixed")

    with torch.autocast("cpu", torch.bfloat16):
        context = in_tiles(mixed, operands_of(inputs()), request(), 3).context
    context.sum().backward()
    assert seen == [torch.bfloat16] * 6


def test_tiles_cover_all_queries_in_order():
    seen: list[int] = []

    def one(tile: AttentionInputs) -> Attended:
        seen.append(tile.pairs.query.shape[-2])
        return compute(tile)

    with torch.no_grad():
        assert in_tiles(one, operands_of(inputs()), request(), 3).context.shape == (2, NUM_QUERIES, 2)
    assert seen == [3, 3, 1]


@pytest.mark.wrong_shapes
def test_parts_are_put_side_by_side():
    def part(start: int, count: int) -> Attended:
        context = torch.full((2, count, 3), start)
        return Attended(context, "k", weights=torch.zeros(2, count, 4), argmax=torch.zeros(2, count))

    joined = join([part(0, 2), part(2, 3)])
    assert joined.context[0, :, 0].tolist() == [0, 0, 2, 2, 2]
    assert (joined.kernel, joined.entropy) == ("k", None)
    assert joined.weights is not None
    assert joined.weights.shape == (2, 5, 4)
    assert joined.argmax is not None
    assert joined.argmax.shape == (2, 5)

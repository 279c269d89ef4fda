import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from heedful.attention.dispatch import attend
from heedful.attention.masks import padding
from heedful.attention.scores import SCORES, Additive, Dot
from heedful.attention.simplex import Sparsemax
from heedful.errors import ShapeError, UsageError
from heedful.layers.query_vectors import MultiQueryVectorAttention, TanhDot, overlap_penalty

QUERIES, HIDDEN, STATES = 3, 5, 4


def make(has_bias: bool = False, num_queries: int = QUERIES, dropout: float = 0.0) -> MultiQueryVectorAttention:
    torch.manual_seed(0)
    layer = MultiQueryVectorAttention(num_queries, TanhDot(HIDDEN, STATES, has_bias=has_bias), dropout).double()
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


def softmax_rows(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def test_it_is_the_structured_self_attentive_embedding():
    layer = make()
    parameters = {name: parameter.detach().numpy() for name, parameter in layer.named_parameters()}
    w1, w2 = parameters["score.key_projection.weight"], parameters["queries"]
    assert (w1.shape, w2.shape, len(parameters)) == ((HIDDEN, STATES), (QUERIES, HIDDEN), 2)
    states = torch.randn(2, 7, STATES, dtype=torch.float64)
    vector, attended = layer(states, states, need=("weights",))
    assert attended.weights is not None
    for item, h in enumerate(states.numpy()):
        a = softmax_rows(w2 @ np.tanh(w1 @ h.T))
        m = a @ h
        assert np.abs(attended.weights[item].detach().numpy() - a).max() <= 1e-14
        assert np.abs(attended.context[item].detach().numpy() - m).max() <= 1e-14
        assert np.abs(vector[item].detach().numpy() - np.concatenate(list(m))).max() <= 1e-14


def test_one_query_vector_with_bias_is_attention_over_words():
    layer = make(has_bias=True, num_queries=1)
    w, b = layer.score.key_projection.weight.detach().numpy(), layer.score.key_projection.bias.detach().numpy()
    u = layer.queries.detach().numpy()[0]
    states = torch.randn(1, 6, STATES, dtype=torch.float64)
    exponentials = [math.exp(float(u @ np.tanh(w @ h + b))) for h in states[0].numpy()]
    wanted = sum(e / math.fsum(exponentials) * h for e, h in zip(exponentials, states[0].numpy(), strict=True))
    assert np.abs(layer(states, states)[0][0].detach().numpy() - wanted).max() <= 1e-14


@pytest.mark.parametrize("name", SCORES)
def test_each_query_vector_attends_as_if_it_were_alone(name: str):
    torch.manual_seed(0)
    layer = MultiQueryVectorAttention(QUERIES, SCORES[name](4, 4, 6)).double()
    key, value = torch.randn(2, 5, 4, dtype=torch.float64), torch.randn(2, 5, 3, dtype=torch.float64)
    mask = padding(torch.tensor([5, 2]))
    vector = layer(key, value, mask)[0]
    assert vector.shape == (2, QUERIES * 3)
    alone = [
        attend(query.expand(2, 1, 4), key, value, score=layer.score, mask=mask).context[:, 0] for query in layer.queries
    ]
    assert float((vector - torch.cat(alone, dim=-1)).detach().abs().max()) <= 1e-14


def test_any_number_of_leading_axes():
    layer = make()
    states = torch.randn(2, 3, 7, STATES, dtype=torch.float64)
    together = layer(states, states)[0]
    assert together.shape == (2, 3, QUERIES * STATES)
    assert float((layer(states[1, 2], states[1, 2])[0] - together[1, 2]).detach().abs().max()) <= 1e-14


def test_prepared_keys_are_keys():
    layer = make()
    states = torch.randn(2, 7, STATES, dtype=torch.float64)
    assert torch.equal(layer(layer.score.prepare(states), states)[0], layer(states, states)[0])


def test_padding_changes_nothing_and_an_empty_item_is_zero():
    layer = make()
    states = torch.randn(3, 7, STATES, dtype=torch.float64).requires_grad_()
    lengths = torch.tensor([7, 0, 4])
    vector, attended = layer(states, states, padding(lengths), ("weights",))
    assert attended.weights is not None
    alone = layer(states[2, :4], states[2, :4])[0]
    assert float((vector[2] - alone).detach().abs().max()) <= 1e-14
    assert vector[1].count_nonzero() == 0
    loss = vector.square().sum() + overlap_penalty(attended.weights).sum()
    gradients = torch.autograd.grad(loss, [states, *layer.parameters()])
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)
    assert gradients[0][1].count_nonzero() == gradients[0][2, 4:].count_nonzero() == 0
    assert bool((gradients[0][2, :4] != 0.0).all())


def test_another_normalizer():
    layer = MultiQueryVectorAttention(2, Dot(4, 4), normalizer=Sparsemax())
    nn.init.constant_(layer.queries, 5.0)
    states = torch.eye(4)[None] * torch.tensor([2.0, 1.0, 1.0, 1.0])[:, None]
    assert layer(states, states)[0].tolist() == [[2.0, 0.0, 0.0, 0.0] * 2]


def test_dropout_is_of_training_alone():
    layer = make(dropout=0.5)
    states = torch.randn(2, 7, STATES, dtype=torch.float64)
    assert torch.equal(layer.eval()(states, states)[0], make()(states, states)[0])
    assert not torch.equal(layer.train()(states, states)[0], make()(states, states)[0])


class Largest(TorchDispatchMode):
    """Notes how many numbers the largest tensor has that is made under it."""

    numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, Tensor):
                self.numbers = max(self.numbers, tensor.numel())
        return result


def test_no_array_of_query_key_and_hidden_is_ever_made():
    batch, num_queries, num_keys, hidden = 2, 16, 20, 24
    layer = MultiQueryVectorAttention(num_queries, TanhDot(hidden, 8))
    states = torch.randn(batch, num_keys, 8).requires_grad_()
    with Largest() as largest:
        vector, attended = layer(states, states, need=("weights",))
        (vector.sum() + overlap_penalty(attended.weights).sum()).backward()
    assert largest.numbers == batch * num_keys * hidden
    assert states.grad is not None


def test_first_query_vectors():
    torch.manual_seed(0)
    queries = MultiQueryVectorAttention(40, Additive(60, 8, 5)).queries.detach()
    bound = math.sqrt(6.0 / 100)
    assert 0.95 * bound < float(queries.abs().max()) <= bound
    weight = TanhDot(60, 40).key_projection.weight.detach()
    assert 0.95 * bound < float(weight.abs().max()) <= bound
    assert TanhDot(60, 40, has_bias=True).key_projection.bias.count_nonzero() == 0
    assert TanhDot(60, 40).key_projection.bias is None


def test_what_does_not_fit_is_refused():
    with pytest.raises(UsageError, match="num_queries must be at least 1, got 0"):
        MultiQueryVectorAttention(0, TanhDot(3, 3))
    with pytest.raises(ShapeError, match=r"key size 4, got key \[2, 5, 6\]"):
        make()(torch.zeros(2, 5, 6).double(), torch.zeros(2, 5, 6).double())


def test_the_penalty_by_single_numbers():
    weights = torch.rand(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    given = overlap_penalty(weights)
    assert given.shape == (2,)
    for penalty, rows in zip(given.tolist(), weights.tolist(), strict=True):
        wanted = 0.0
        for i, one in enumerate(rows):
            for j, two in enumerate(rows):
                wanted += (math.fsum(x * y for x, y in zip(one, two, strict=True)) - (i == j)) ** 2
        assert penalty == pytest.approx(wanted, rel=1e-14)


def test_the_penalty_is_least_where_each_query_has_a_key_of_its_own():
    apart, together = torch.eye(4)[:3], torch.eye(4)[[0, 0, 0]]
    assert float(overlap_penalty(apart)) == 0.0
    assert float(overlap_penalty(together)) == 6.0  # every pair overlaps wholly
    assert float(overlap_penalty(torch.full((3, 4), 0.25))) == pytest.approx(3 * 0.75**2 + 6 * 0.25**2)


def test_the_penalty_drives_query_vectors_apart():
    layer = make()
    states = torch.randn(4, 9, STATES, dtype=torch.float64)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
    penalties: list[float] = []
    for _ in range(60):
        weights = layer(states, states, need=("weights",))[1].weights
        loss = overlap_penalty(weights).mean()
        penalties.append(float(loss.detach()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert penalties[-1] < 0.5 * penalties[0]


def test_the_penalty_of_empty_rows_has_no_gradient():
    weights = torch.zeros(2, 3, 5, dtype=torch.float64).requires_grad_()
    penalty = overlap_penalty(weights)
    assert penalty.tolist() == [3.0, 3.0]
    assert torch.autograd.grad(penalty.sum(), weights)[0].count_nonzero() == 0
    filled = torch.rand(2, 3, 5, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(overlap_penalty, filled)

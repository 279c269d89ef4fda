"""Every model with every option keeps the contracts, and every contract refuses a model planted to break it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import pytest
import torch
from torch import Tensor

from heedful.attention import stepwise
from heedful.attention.interface import Need
from heedful.models.inputs import Inputs, TokenInputs, token_inputs
from heedful.models.interface import Decoded, Memory, Seq2Seq, State
from heedful.models.transformer import TransformerMemory
from heedful.training.cross_entropy import linear_cross_entropy
from tests.contracts import models as contracts
from tests.contracts.models import CONTRACTS, Contract
from tests.models.tiny import CONFIGS, make_model, make_sources, make_targets
from tests.thorough import sampled


@sampled(2)
@pytest.mark.parametrize("model", CONFIGS)
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_kept(contract: Contract, model: str):
    with torch.no_grad():
        contract(make_model(model))


@pytest.mark.parametrize("model", ["transformer-pre", "transformer-post"])
@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_kept_where_source_and_target_share_one_table(contract: Contract, model: str):
    with torch.no_grad():
        contract(make_model(model, is_shared=True))


@pytest.mark.parametrize("model", CONFIGS)
def test_the_future_is_invisible_while_training_too(model: str):
    made = make_model(model).train()
    torch.manual_seed(1)  # other seeds may drop every feature of a token, which then really is forgotten
    contracts.the_future_is_invisible(made)


def curvature_is_that_of_gradients(made: Seq2Seq) -> None:
    """The product of the Hessian of a loss with a vector is the slope of the gradient along that vector."""
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    parameters = list(made.parameters())
    generator = torch.Generator().manual_seed(5)
    directions = [torch.randn(each.shape, generator=generator, dtype=each.dtype) for each in parameters]

    def gradients(is_graph_kept: bool = False) -> list[Tensor]:
        features = made(TokenInputs(source, lengths), target_in).features.flatten(0, 1)
        gold = target_in.flatten()
        table = made.logits(features[:1]).shape[-1]
        weight = torch.linspace(-1.0, 1.0, table * features.shape[-1], dtype=features.dtype)
        loss = linear_cross_entropy(features, weight.reshape(table, -1), None, gold, 0.1).total
        return list(
            torch.autograd.grad(loss, parameters, create_graph=is_graph_kept, allow_unused=True, materialize_grads=True)
        )

    def moved(distance: float) -> list[Tensor]:
        with torch.no_grad():
            for each, direction in zip(parameters, directions, strict=True):
                each.add_(direction, alpha=distance)
        return gradients()

    product = sum((one * other).sum() for one, other in zip(gradients(True), directions, strict=True))
    assert isinstance(product, Tensor)
    seconds = torch.autograd.grad(product, parameters, allow_unused=True, materialize_grads=True)
    step = 1e-5
    ahead, behind = moved(step), moved(-2.0 * step)
    wanted = torch.cat([((one - other) / (2.0 * step)).flatten() for one, other in zip(ahead, behind, strict=True)])
    found = torch.cat([each.flatten() for each in seconds])
    assert float(wanted.norm()) > 1e-3
    assert float((found - wanted).norm()) <= 1e-5 * float(wanted.norm())


CURVED = ("rnnsearch", "transformer-pre")


@pytest.mark.parametrize("model", CURVED)
def test_second_derivatives_of_the_loss(model: str):
    curvature_is_that_of_gradients(make_model(model))


def test_values_without_a_second_derivative_are_refused(monkeypatch: pytest.MonkeyPatch):
    def forgetful(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        ctx.read.append((ctx.saved_tensors[0].detach(), gradient.detach()))
        return gradient, None, None, None, None

    monkeypatch.setattr(stepwise._Credited, "backward", staticmethod(forgetful))
    with pytest.raises(AssertionError):
        curvature_is_that_of_gradients(make_model("rnnsearch"))


@pytest.mark.parametrize("model", CONFIGS)
def test_gradients_of_a_batch_are_the_sum_of_those_of_its_pairs(model: str):
    made = make_model(model)
    source, lengths = make_sources()
    target_in = make_targets(len(source))
    parameters = list(made.parameters())

    def gradients(rows: slice) -> list[Tensor]:
        inputs = TokenInputs(source[rows, : int(lengths[rows].max())], lengths[rows])
        features = made(inputs, target_in[rows]).features
        # A key that is merely chosen gives its score no gradient.
        loss = made.logits(features).square().sum()
        return list(torch.autograd.grad(loss, parameters, materialize_grads=True))

    together = gradients(slice(None))
    alone = [gradients(slice(row, row + 1)) for row in range(len(source))]
    for whole, *parts in zip(together, *alone, strict=True):
        assert float((whole - torch.stack(parts).sum(dim=0)).abs().max()) <= 1e-10 * max(1.0, float(whole.abs().max()))


@dataclass(frozen=True)
class StuckState(State):
    """Wraps a state whose hypotheses cannot be reordered."""

    inner: State

    def reorder(self, parents: Tensor) -> Self:
        return self


class Planted(Seq2Seq):
    """A right model with one fault."""

    def __init__(
        self,
        encode: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = lambda source, lengths: (source, lengths),
        forward: Callable[[Decoded], Decoded] = lambda decoded: decoded,
        step: Callable[[Decoded], Decoded] = lambda decoded: decoded,
        stuck: bool = False,
        prepare: Callable[[Memory], Memory] = lambda memory: memory,
    ) -> None:
        super().__init__()
        self.inner = make_model("transformer-pre")
        self.target_embedding = self.inner.get_submodule("target_embedding")
        self.alignment = self.inner.alignment
        self._encode, self._forward, self._step, self._stuck = encode, forward, step, stuck
        self._prepare = prepare

    def encode(self, inputs: Inputs) -> Memory:
        return self.inner.encode(self._planted(inputs))

    def start(self, memory: Memory, num_hypotheses: int = 1) -> State:
        state = self.inner.start(memory, num_hypotheses)
        return StuckState(state) if self._stuck else state

    def prepare_steps(self, memory: Memory) -> Memory:
        return self._prepare(memory)

    def step(self, tokens: Tensor, state: State, memory: Memory, need: tuple[Need, ...] = ()) -> tuple[Decoded, State]:
        inner = state.inner if isinstance(state, StuckState) else state
        decoded, inner = self.inner.step(tokens, inner, memory, need)
        return self._step(decoded), StuckState(inner) if self._stuck else inner

    def forward(self, inputs: Inputs, target_in: Tensor, need: tuple[Need, ...] = ()) -> Decoded:
        return self._forward(self.inner(self._planted(inputs), target_in, need))

    def _planted(self, inputs: Inputs) -> TokenInputs:
        tokens = token_inputs(inputs)
        return TokenInputs(*self._encode(tokens.ids, tokens.lengths))


def drifting(decoded: Decoded) -> Decoded:
    return replace(decoded, features=decoded.features + 1e-9)


def drifting_memory(memory: Memory) -> Memory:
    assert isinstance(memory, TransformerMemory)
    return replace(memory, values=tuple(value + 1e-9 for value in memory.values))


def leaking(decoded: Decoded) -> Decoded:
    return replace(decoded, features=decoded.features + 1e-9 * decoded.features.mean(dim=1, keepdim=True))


def batch_normalized(decoded: Decoded) -> Decoded:
    return replace(decoded, features=decoded.features - decoded.features.mean(dim=0, keepdim=True))


def scaled_down(decoded: Decoded) -> Decoded:
    attended = {
        name: replace(one, weights=None if one.weights is None else 0.9 * one.weights)
        for name, one in decoded.attended.items()
    }
    return replace(decoded, attended=attended)


def unattended(decoded: Decoded) -> Decoded:
    return replace(decoded, attended={})


def padding_as_real(source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return source, torch.full_like(lengths, source.shape[1])


def only_the_end(source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    return torch.where(source == 3, source, 5), lengths


FAULTS: list[tuple[Contract, Callable[[], Seq2Seq]]] = [
    (contracts.steps_equal_forward, lambda: Planted(step=drifting)),
    (contracts.prepared_steps_equal_forward, lambda: Planted(prepare=drifting_memory)),
    (contracts.neighbours_are_invisible, lambda: Planted(forward=batch_normalized)),
    (contracts.neighbours_are_invisible, lambda: Planted(encode=padding_as_real)),
    (contracts.padding_is_invisible, lambda: Planted(encode=padding_as_real)),
    (contracts.the_future_is_invisible, lambda: Planted(forward=leaking)),
    (contracts.the_source_is_read, lambda: Planted(encode=only_the_end)),
    (contracts.alignments_are_distributions, lambda: Planted(forward=scaled_down, step=scaled_down)),
    (contracts.alignments_are_distributions, lambda: Planted(step=scaled_down)),
    (contracts.alignments_are_distributions, lambda: Planted(encode=padding_as_real)),
    (contracts.alignments_are_distributions, lambda: Planted(forward=unattended)),
    (contracts.hypotheses_go_their_own_ways, lambda: Planted(stuck=True)),
]


@pytest.mark.parametrize("fault", range(len(FAULTS)), ids=lambda i: f"{FAULTS[i][0].__name__}-{i}")
def test_a_wrong_model_is_refused(fault: int):
    contract, plant = FAULTS[fault]
    with torch.no_grad(), pytest.raises(AssertionError):
        contract(plant())


def test_every_contract_has_something_planted():
    assert {contract for contract, _ in FAULTS} == set(CONTRACTS)


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_without_a_fault_the_planted_model_is_taken(contract: Contract):
    with torch.no_grad():
        contract(Planted())

"""Every score with every normalizer keeps the contracts with a bias, whole and in tiles, and wrong ones are refused."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import Tensor

from heedful.attention import dispatch
from heedful.attention.biases import BIASES, Biased
from heedful.attention.interface import Score
from heedful.attention.lowered import LoweredBias
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from tests.attention.cases import make_case
from tests.contracts import attention as contracts
from tests.contracts.nonfinite import hidden_nan_and_infinity_reach_nothing
from tests.contracts.oracle import ORACLES
from tests.contracts.table import CONTRACTS
from tests.contracts.ways import Combination, Way
from tests.thorough import sampled, thinned

SETTINGS = {"relative_buckets": {"num_buckets": 6, "max_distance": 4}, "relative_keys": {"max_distance": 2}}
KEPT = (
    contracts.equals_the_reference,
    contracts.weights_lie_in_their_set,
    contracts.empty_rows_are_zero,
    contracts.queries_are_answered_one_by_one,
    contracts.batch_changes_nothing,
    contracts.gradients_are_right,
    contracts.second_derivatives_are_right,
    contracts.layouts_change_nothing,
    contracts.agrees_with_plain,
    contracts.summaries_are_of_the_weights,
    hidden_nan_and_infinity_reach_nothing,
)
"""The others are about scores that a position does not change, and kernels without biases."""


def factory(score: str, bias: str) -> Callable[[int, int, int], Score]:
    def make(query_size: int, key_size: int, hidden_size: int = 0) -> Score:
        by_position = BIASES[bias](0, query_size, **SETTINGS.get(bias, {}))  # pyright: ignore[reportArgumentType]
        return Biased(SCORES[score](query_size, key_size, hidden_size), by_position)

    make.is_positional = True  # type: ignore[attr-defined]
    return make


ASKED = [
    Combination("novel", "none", "softmax", 3, 4),
    Combination("novel", "padding & causal", "sparsemax", 4, 4),
    Combination("novel", "local-p over the source", "softmax", 3, 4),
]


@sampled(2)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("check", KEPT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("score", ["scaled_dot", "additive"])
def test_each_contract_is_kept_with_each_bias(
    bias: str, check: Callable[..., None], score: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(SCORES, "novel", factory(score, bias))
    # Additive scores are computed by the compiled loop, and the driver adds the bias.
    way = Way("additive_cpu" if score == "additive" else "plain", is_tiled=True)
    contract = next(each for each in CONTRACTS if each.check is check)
    # Hidden numbers need a mask; all else that contracts ask of mechanisms holds for these.
    asked = [each for each in ASKED if each.mask != "none" or check is not hidden_nan_and_infinity_reach_nothing]
    for combination in asked:
        with torch.set_grad_enabled(contract.has_gradients):
            check(way, combination)


CROSSED = [
    (score, normalizer, list(BIASES)[number % len(BIASES)])
    for number, (score, normalizer) in enumerate(product(SCORES, NORMALIZERS))
]


@sampled(2)
@pytest.mark.parametrize(("score", "normalizer", "bias"), thinned(CROSSED, 5))
def test_every_score_with_every_normalizer(score: str, normalizer: str, bias: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(SCORES, "novel", factory(score, bias))
    is_tree = NORMALIZERS[normalizer].scope == "matrix"
    combination = Combination("novel", "padding", normalizer, 4 if is_tree else 3, 4)
    case = make_case("novel", normalizer=normalizer)
    request = {"score": case.score, "normalizer": case.normalizer}
    if is_tree:
        case = make_case("novel", num_queries=4, normalizer=normalizer)
    choices = dispatch.explain(*case.inputs, **request)  # type: ignore[arg-type]
    for choice in choices:
        if choice.reason and choice.kernel not in {"plain", "additive_cpu", "additive_triton"}:
            assert choice.reason == "takes no score with a bias by positions"
    kernel = next(choice.kernel for choice in choices if not choice.reason)
    way = Way(kernel, is_tiled=not is_tree)
    if NORMALIZERS[normalizer] in ORACLES:
        with torch.no_grad():
            contracts.equals_the_reference(way, combination)
    contracts.gradients_are_right(way, combination)
    # Of five pairs one: every score and every normalizer is among them.
    if CROSSED.index((score, normalizer, bias)) % 9 == 0:
        contracts.second_derivatives_are_right(way, combination)


def forgets_to_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions of the first tile for all: right as long as there is one tile."""
    monkeypatch.setattr(LoweredBias, "of_queries", lambda self, rows: first_rows(self, rows))


def first_rows(bias: LoweredBias, rows: slice) -> LoweredBias:
    num_rows = bias.positions[rows].shape[0]
    return replace(bias, query=bias.query[..., rows, :], positions=bias.positions[:num_rows])


def detaches_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    add_to = LoweredBias.add_to

    def detached(self: LoweredBias, scores: Tensor) -> Tensor:
        parameters = tuple(parameter.detach() for parameter in self.parameters)
        return add_to(replace(self, parameters=parameters), scores)

    monkeypatch.setattr(LoweredBias, "add_to", detached)


def detaches_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    add_to = LoweredBias.add_to
    monkeypatch.setattr(
        LoweredBias, "add_to", lambda self, scores: add_to(replace(self, query=self.query.detach()), scores)
    )


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (forgets_to_cut, contracts.agrees_with_plain),
        (detaches_its_parameters, contracts.gradients_are_right),
        (detaches_the_query, contracts.gradients_are_right),
    ],
)
def test_a_wrong_bias_is_refused(
    plant: Callable[[pytest.MonkeyPatch], None], check: Callable[..., None], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(SCORES, "novel", factory("scaled_dot", "relative_keys"))
    combination = Combination("novel", "none", "softmax", 3, 4)
    way = Way("plain", is_tiled=True)
    check(way, combination)
    plant(monkeypatch)
    with pytest.raises((AssertionError, RuntimeError)):
        check(way, combination)

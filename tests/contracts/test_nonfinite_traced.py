"""NaN and infinity that masks hide reach nothing where no number can be looked at: `torch.func`, compiled code."""

from collections.abc import Callable
from dataclasses import fields
from functools import partial
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from heedful.attention import dispatch
from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from tests.attention.cases import MASKS, Case
from tests.contracts.attention import make
from tests.contracts.nonfinite import hidden_nan_and_infinity_reach_nothing
from tests.contracts.ways import Combination
from tests.thorough import sampled, thinned

pytestmark = [
    # PyTorch's own: the compiler makes an object of an autograd function.
    pytest.mark.filterwarnings("ignore:.*should not be instantiated.*:DeprecationWarning"),
    # It looks for gradients of inputs that are no leaves.
    pytest.mark.filterwarnings("ignore:.*grad attribute of a Tensor that is not a leaf.*:UserWarning"),
    pytest.mark.compiled,
]


def results(case: Case, query: Tensor, key: Tensor, value: Tensor) -> dict[str, Tensor]:
    attended = attend(query, key, value, score=case.score, mask=case.mask, normalizer=case.normalizer, need=case.need)
    found = {field.name: getattr(attended, field.name) for field in fields(attended)}
    return {name: result for name, result in found.items() if isinstance(result, Tensor)}


def mapped(case: Case) -> Attended:
    """Attention mapped over one more axis, of one place."""
    parts = torch.func.vmap(partial(results, case))(*(each[None] for each in case.inputs))
    return Attended(kernel="mapped", **{name: result[0] for name, result in parts.items()})


def compiled(case: Case) -> Attended:
    torch.compiler.reset()
    whole = torch.compile(partial(results, case), backend="eager", fullgraph=True)
    return Attended(kernel="compiled", **whole(*case.inputs))


MASKED = [name for name in MASKS if name != "none"]
MAPPED = [
    *(Combination(score, "padding & causal", "softmax", 3, 4) for score in SCORES),
    *(Combination("additive", "window & padding", name, 4, 4) for name in NORMALIZERS),
    *(Combination("scaled_dot", mask, "softmax", 3, 4) for mask in MASKED if mask != "padding & causal"),
]
COMPILED = [
    *(Combination("scaled_dot", mask, "softmax", 3, 4) for mask in ("padding & causal", "graph & padding")),
    Combination("additive", "window & padding", "sparsemax", 3, 4),
    Combination("gaussian", "local-p of another sigma", "softmax", 3, 4),
]


@pytest.mark.parametrize("combination", MAPPED, ids=str)
def test_mapped(combination: Combination):
    hidden_nan_and_infinity_reach_nothing(mapped, combination)


@pytest.mark.parametrize("combination", thinned(COMPILED[::-1], 4), ids=str)
def test_compiled(combination: Combination):
    hidden_nan_and_infinity_reach_nothing(compiled, combination)


@sampled(3)
@pytest.mark.parametrize("mask", thinned(MASKED, 6))
def test_every_mask_can_be_compiled(mask: str):
    case = make(Combination("scaled_dot", mask, "softmax", 3, 4), (3,), [3, 0, 2])
    with torch.no_grad():
        wanted = results(case, *case.inputs)["context"]
        torch.testing.assert_close(compiled(case).context, wanted, rtol=0, atol=1e-11)


def replaces_nothing(query: Tensor, key: Tensor, value: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor, None]:
    return query, key, value, None


def replaces_all(query: Tensor, key: Tensor, value: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor, None]:
    return query.nan_to_num(), key.nan_to_num(), value.nan_to_num(), None


@pytest.mark.parametrize("planted", [replaces_nothing, replaces_all])
def test_a_wrong_implementation_is_refused(planted: Callable[..., object]):
    combination = Combination("scaled_dot", "padding & causal", "softmax", 3, 4)
    with patch.object(dispatch, "with_zeros_unseen", planted), pytest.raises(AssertionError):
        hidden_nan_and_infinity_reach_nothing(mapped, combination)

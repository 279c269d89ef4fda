"""Scores and normalizers keep the contracts of `torch.func` and compilers, and each contract refuses a wrong one."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended
from heedful.attention.kernels.additive.score_kernel import AdditiveScores
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from tests.attention.cases import Case
from tests.contracts import transforms
from tests.contracts.errors import Attention
from tests.contracts.transforms import TRANSFORMS, Transform
from tests.contracts.ways import Combination
from tests.thorough import is_thorough, sampled

pytestmark = [
    # PyTorch's own: forward mode scripts its rules, and the compiler makes an object of an autograd function.
    pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated.*:DeprecationWarning"),
    pytest.mark.compiled,
]

_COMPILERS = (transforms.exported_takes_any_size, transforms.compiled_is_the_same)


def auto(case: Case) -> Attended:
    return attend(*case.inputs, score=case.score, mask=case.mask, normalizer=case.normalizer, need=case.need)


def kept(transform: Transform) -> list[Combination]:
    if transform.is_crossed:
        return [Combination(score, "none", normalizer, 3, 4) for score in SCORES for normalizer in NORMALIZERS]
    scores = [
        Combination(score, "none", "softmax", 3, 4) for score in ("scaled_dot", "additive", "location", "gaussian")
    ]
    return [*scores, *(Combination("dot", "none", normalizer, 3, 4) for normalizer in NORMALIZERS)]


def is_met_elsewhere(transform: Transform, each: Combination) -> bool:
    """Whether score and normalizer of a crossed combination occur in others that the gate tries."""
    score, normalizer = [*SCORES].index(each.score), [*NORMALIZERS].index(each.normalizer)
    return transform.is_crossed and score != normalizer % len(SCORES) and normalizer != score % len(NORMALIZERS)


KEPT = [(transform, each) for transform in TRANSFORMS for each in kept(transform)]
CASES = [
    is_thorough((transform, each))
    # Compilers take seconds for each.
    if is_met_elsewhere(transform, each) or (transform.check in _COMPILERS and number % 4)
    else (transform, each)
    for number, (transform, each) in enumerate(KEPT)
]


@sampled(3)
@pytest.mark.parametrize(("transform", "combination"), CASES, ids=str)
def test_kept(transform: Transform, combination: Combination):
    with torch.set_grad_enabled(transform.wants_gradient):
        transform.check(auto, combination)


class _Opaque(torch.autograd.Function):
    """The identity as compiled loops are: from memory to memory, with a gradient that has no graph."""

    @staticmethod
    def forward(ctx: object, numbers: Tensor) -> Tensor:
        return torch.from_numpy(numbers.detach().numpy().copy())

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> Tensor:  # type: ignore[override]
        return torch.from_numpy(gradient.detach().numpy().copy())


def reads_memory(case: Case) -> Attended:
    attended = auto(case)
    return replace(attended, context=_Opaque.apply(attended.context))


def fixes_the_sizes(case: Case) -> Attended:
    attended = auto(case)
    return replace(attended, context=attended.context + torch.zeros([int(size) for size in attended.context.shape]))


def looks_at_numbers(case: Case) -> Attended:
    attended = auto(case)
    return attended if float(attended.context.detach().sum()) > 0 else replace(attended, context=attended.context + 0.0)


def differs_when_traced(case: Case) -> Attended:
    attended = auto(case)
    return replace(attended, context=attended.context * (1.001 if torch.compiler.is_compiling() else 1.0))


PLANTED: list[tuple[Callable[[Attention, Combination], None], Attention]] = [
    *((each.check, reads_memory) for each in TRANSFORMS if each.check not in _COMPILERS),
    (transforms.exported_takes_any_size, fixes_the_sizes),
    (transforms.compiled_is_the_same, looks_at_numbers),
    (transforms.compiled_is_the_same, differs_when_traced),
]


@pytest.mark.parametrize(("check", "planted"), PLANTED)
def test_a_wrong_implementation_is_refused(check: Callable[[Attention, Combination], None], planted: Attention):
    with pytest.raises(Exception):  # noqa: B017, PT011 - PyTorch has an error of its own for each of them
        check(planted, Combination("scaled_dot", "none", "softmax", 3, 4))


def test_loops_are_named_where_they_cannot_run():
    case = transforms.make(Combination("additive", "none", "softmax", 3, 4))
    kernel = AdditiveScores.name
    with pytest.raises(Exception, match="transform"):
        torch.func.vmap(
            lambda query: attend(query, case.key[0], case.value[0], score=case.score, kernel=kernel).context
        )(case.query)

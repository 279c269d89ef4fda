"""Contracts of attention under `torch.func`, on tensors without numbers, compiled and exported.

A contract is a function that raises where an implementation breaks it. An implementation is called with a case, as in
attention.py, or with the parts of one that a transform puts other tensors in the place of.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import functional
from torch.export import Dim, export
from torch.func import hessian, jacfwd, jacrev, vmap

from heedful.attention.masks import Mask, padding
from heedful.attention.normalizers import NORMALIZERS
from tests.attention.cases import Case, make_case
from tests.contracts.attention import chooses, distance, make
from tests.contracts.errors import Attention
from tests.contracts.ways import Combination

LENGTHS = [4, 2]


def is_tree(combination: Combination) -> bool:
    """Whether queries and keys are the same words."""
    return NORMALIZERS[combination.normalizer].scope == "matrix"


def context(attention: Attention, case: Case, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
    """Contexts of other tensors, and another mask, than the case has."""
    moved = replace(case, query=query, key=key, value=value, mask=mask_of(case, lengths))
    return attention(moved).context


def mask_of(case: Case, lengths: Tensor) -> Mask:
    return padding(lengths) if case.mask is None else case.mask & padding(lengths)


def vmap_is_a_loop(attention: Attention, combination: Combination) -> None:
    """Mapped over the items, keys padded to one length, it gives what it gives item by item."""
    case, lengths = make(combination, (2,)), torch.tensor(LENGTHS)
    whole = replace(case, mask=None)
    mapped = vmap(partial(context, attention, whole))(*case.inputs, lengths)
    items = [context(attention, whole, *item) for item in zip(*case.inputs, lengths, strict=True)]
    assert distance(mapped, torch.stack(items)) <= 1e-12


def vmap_of_queries_alone_is_a_loop(attention: Attention, combination: Combination) -> None:
    """Queries mapped over shared keys and values give what they give one by one."""
    case = make(combination, ())
    lengths, queries = torch.tensor(3), torch.stack((case.query, case.query + 0.5))
    fixed = replace(case, mask=None)
    mapped = vmap(partial(context, attention, fixed), in_dims=(0, None, None, None))
    items = [context(attention, fixed, each, case.key, case.value, lengths) for each in queries]
    assert distance(mapped(queries, case.key, case.value, lengths), torch.stack(items)) <= 1e-12


def jacobians_are_those_of_backward(attention: Attention, combination: Combination) -> None:
    """Reverse and forward mode of `torch.func`, and many gradients at a time, equal a gradient for each number."""
    function, inputs = smooth_function(attention, combination)
    wanted = functional.jacobian(function, inputs)
    places = tuple(range(len(inputs)))
    for found in (
        jacrev(function, places)(*inputs),
        jacfwd(function, places)(*inputs),
        functional.jacobian(function, inputs, vectorize=True),
    ):
        assert all(distance(one, other) <= 1e-10 for one, other in zip(found, wanted, strict=True))


def hessians_are_those_of_backward(attention: Attention, combination: Combination) -> None:
    """The Hessian of `torch.func` equals that of two backward passes, which is not zero by chance."""
    function, inputs = smooth_function(attention, combination)

    def loss(tensor: Tensor) -> Tensor:
        return function(tensor, *inputs[1:]).sin().sum()

    wanted = functional.hessian(loss, inputs[0])
    assert distance(hessian(loss)(inputs[0]), wanted) <= 1e-10


def smooth_function(attention: Attention, combination: Combination) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """A number of each context, as a function of all that it is smooth in."""
    case, lengths = make(combination, (1,)), torch.tensor([3])
    case = replace(case, mask=None)
    if chooses(case.normalizer):
        return lambda value: context(attention, case, case.query, case.key, value, lengths).sum(-1), (case.value,)
    return lambda *inputs: context(attention, case, *inputs, lengths).sum(-1), case.inputs


def fake_tensors_have_the_shape(attention: Attention, combination: Combination) -> None:
    """Tensors without numbers give tensors without numbers, of the shape and type that there would be."""
    case = make(combination, (2,))
    lengths = torch.tensor(LENGTHS)
    real = context(attention, replace(case, mask=None), *case.inputs, lengths)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        inputs = [mode.from_tensor(each) for each in (*case.inputs, lengths)]
        fake = context(attention, replace(case, mask=None), *inputs)
    assert type(fake) is type(inputs[0])
    assert (fake.shape, fake.dtype) == (real.shape, real.dtype)


class Attend(nn.Module):
    """Attention of a case as a module, for compilers."""

    def __init__(self, attention: Attention, case: Case) -> None:
        super().__init__()
        self.attention, self.case, self.score = attention, replace(case, mask=None), case.score

    def forward(self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
        return context(self.attention, self.case, query, key, value, lengths)


def exported_takes_any_size(attention: Attention, combination: Combination) -> None:
    """Exported with symbols for the numbers of items, queries and keys, it answers for others of them alike.

    Queries and keys of a tree are the same words, with a root before the keys or without it.
    """
    case = make(combination, (2,))
    num_queries, num_keys = case.allowed.shape[-2:]
    module = Attend(attention, case)
    batch, query = Dim("batch"), Dim("query")
    num_roots = num_keys - num_queries
    key = Dim("key") if not is_tree(combination) else query + num_roots if num_roots else query
    shapes = ({0: batch, 1: query}, {0: batch, 1: key}, {0: batch, 1: key}, {0: batch})
    program = export(module, (*case.inputs, torch.tensor(LENGTHS)), dynamic_shapes=shapes).module()
    sizes = [(3, 7, 6), (1, 2, 9), (2, 3, 70)]
    if is_tree(combination):
        sizes = [(3, number, number + num_roots) for number in (2, 3, 6, 30)]
    for num_items, num_queries, num_keys in sizes:
        name, *_ = combination
        other = make_case(name, "none", (num_items,), num_queries, num_keys, seed=5)
        lengths = torch.arange(num_items) % num_keys + 1
        with torch.no_grad():
            wanted, given = (each(*other.inputs, lengths) for each in (module, program))
        assert distance(given, wanted) <= 1e-11


def compiled_is_the_same(attention: Attention, combination: Combination) -> None:
    """Traced whole by the compiler, it gives the same contexts and gradients."""
    if torch.__version__ < "2.13":
        pytest.skip("the compiler does not trace dataclasses.replace, which makes the case")
    case = make(combination, (2,))
    module, lengths = Attend(attention, case), torch.tensor(LENGTHS)
    torch.compiler.reset()
    compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
    inputs = [[tensor.clone().requires_grad_() for tensor in case.inputs] for _ in range(2)]
    contexts = [each(*tensors, lengths) for each, tensors in zip((module, compiled), inputs, strict=True)]
    assert distance(*contexts) <= 1e-11
    if contexts[0].requires_grad:
        for result in contexts:
            result.sin().sum().backward()
        for one, other in zip(*inputs, strict=True):
            assert (one.grad is None) == (other.grad is None)
            assert one.grad is None or other.grad is None or distance(one.grad, other.grad) <= 1e-11


@dataclass(frozen=True)
class Transform:
    """A contract, and how many combinations it is asked of."""

    check: Callable[[Attention, Combination], None]
    is_crossed: bool = True
    """Whether every score is tried with every normalizer; else every score and every normalizer is tried."""
    wants_gradient: bool = False

    def __str__(self) -> str:
        return self.check.__name__


TRANSFORMS: tuple[Transform, ...] = (
    Transform(vmap_is_a_loop),
    Transform(vmap_of_queries_alone_is_a_loop),
    Transform(jacobians_are_those_of_backward, wants_gradient=True),
    Transform(hessians_are_those_of_backward, wants_gradient=True),
    Transform(fake_tensors_have_the_shape),
    Transform(exported_takes_any_size, is_crossed=False),
    Transform(compiled_is_the_same, is_crossed=False, wants_gradient=True),
)

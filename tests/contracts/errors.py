"""Error of a kernel, relative to that of the same formula in plain PyTorch in the same dtype."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor

from heedful.attention.interface import Attended, PreparedKey, Score
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot, LoweredScore
from heedful.attention.profiles import PROFILES
from tests.attention.cases import Case

Attention = Callable[[Case], Attended]


class Ready(Score):
    """A score whose queries and keys are lowered already: kernels get the very tensors, with their strides."""

    def __init__(self, pairs: LoweredScore, max_keys: int | None) -> None:
        super().__init__(pairs.query.shape[-1], pairs.key.shape[-1])
        self.pairs = pairs
        self.max_keys = max_keys

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredScore:
        return replace(self.pairs, query=query, key=prepared.key)


def plain_scores(pairs: LoweredScore) -> tuple[Tensor, Tensor]:
    """Scores as one would write them, and whether there is one."""
    query, key = pairs.query, pairs.key
    if isinstance(pairs, LoweredDot):
        scores = pairs.scale * (query @ key.mT)
    elif isinstance(pairs, LoweredAdditive):
        scores = torch.tanh(query[..., :, None, :] + key[..., None, :, :]) @ pairs.vector
    elif isinstance(pairs, LoweredDistance):
        squared = ((query[..., :, None, :] - key[..., None, :, :]) / pairs.bandwidth).square().sum(dim=-1)
        profile = PROFILES[pairs.profile]
        return profile.log_kernel(squared) * pairs.inverse_temperature, squared < profile.reach**2
    else:
        raise TypeError(f"no plain formula for {type(pairs).__name__}")
    return scores, torch.ones_like(scores, dtype=torch.bool)


def plain(case: Case) -> tuple[Tensor, Tensor]:
    """Contexts and weights of softmax attention as one would write it, in the type of the inputs."""
    pairs = case.score.lower(case.query, case.score.prepare(case.key), case.normalizer.inverse_temperature)
    weights, factors = _weigh(pairs, case)
    weights = weights * factors
    return weights @ case.value, weights


def _weigh(pairs: LoweredScore, case: Case) -> tuple[Tensor, Tensor]:
    scores, exists = plain_scores(pairs)
    may = case.allowed & exists
    empty = ~may.any(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~(may | empty), -torch.inf), dim=-1).masked_fill(empty, 0.0)
    factors = torch.ones_like(case.allowed, dtype=torch.float64) if case.factors is None else case.factors
    return weights, factors.to(weights.dtype)


@dataclass(frozen=True)
class Error:
    """Of one result, its largest entry."""

    given: float
    plain: float
    floor: float
    """Below which nothing is asked: 2^-24 of the sum of absolute terms, or what rounding of terms and result does."""
    deep_floor: float
    """The same with the terms of the scores among the terms: what rounding the scores does."""


# PyTorch's kernel takes a quick exponential, and going back makes the weights again from scores and log normalizer,
# which loses the more digits the larger the scores are: up to this many times what rounding the scores does.
LENIENCY = {"sdpa": 4.0}
TINY: Final = 2.0**-126
"""Smallest normal number of float32."""


def limit_of(name: str) -> float:
    """How many times the error of the plain formula is allowed."""
    return 2.0 if name == "context" else 3.0


def ratio(error: Error, name: str, kernel: str) -> float:
    """How many times the plain formula's error it is, or the floor's share where that is larger; NaN is infinitely."""
    floor = max(error.floor, error.deep_floor * LENIENCY.get(kernel, 1.0))
    if error.given != error.given:
        return math.inf
    # Kernels leave out weights below the smallest normal number.
    return error.given / max(error.plain, floor / limit_of(name), TINY)


def exceeded(error: Error, name: str, kernel: str) -> bool:
    return ratio(error, name, kernel) > limit_of(name)


def measure(attention: Attention, cases: Iterable[Case]) -> dict[str, Error]:
    """Errors of the context and of the gradients of all that the pairs and the values hold.

    Of several cases the largest, so that the plain formula is not held to where it was right by chance: a gradient of
    one number often is.
    """
    found = [_measure(attention, case, seed) for seed, case in enumerate(cases)]
    return {
        name: Error(*(max(vars(errors[name])[part] for errors in found) for part in vars(found[0][name])))
        for name in found[0]
    }


def _measure(attention: Attention, case: Case, seed: int) -> dict[str, Error]:
    pairs = case.score.lower(case.query, case.score.prepare(case.key), case.normalizer.inverse_temperature)
    generator = torch.Generator().manual_seed(seed)
    shape = (*case.allowed.shape[:-1], case.value.shape[-1])
    slope = torch.randn(shape, generator=generator, dtype=torch.float64).to(case.value.dtype)
    wide, value = _changed(pairs, _double), _double(case.value)
    exact = _results(lambda each: plain(each)[0], wide, value, slope.double(), case)
    by_formula = _results(lambda each: plain(each)[0], pairs, case.value, slope, case)
    given = _results(lambda each: attention(each).context, pairs, case.value, slope, case)
    floors, deep_floors = _floors(wide, value, slope.double(), case)
    return {
        name: Error(
            _largest(given[name].double() - exact[name]),
            _largest(by_formula[name].double() - exact[name]),
            max(_largest(floors[name]), torch.finfo(case.value.dtype).eps / 2 * _largest(exact[name])),
            _largest(deep_floors[name]),
        )
        for name in exact
    }


def _results(
    attention: Callable[[Case], Tensor], pairs: LoweredScore, value: Tensor, slope: Tensor, case: Case
) -> dict[str, Tensor]:
    # An expanded tensor is one of less memory: what receives gradient is that, as in every model.
    given = {**_tensors(pairs), "value": value}
    leaves = {name: _unexpanded(tensor).detach().requires_grad_() for name, tensor in given.items()}
    full = {name: leaf.expand_as(given[name]) for name, leaf in leaves.items()}
    own = {name: tensor for name, tensor in full.items() if name != "value"}
    ready = Ready(replace(pairs, **own), case.score.max_keys)
    context = attention(replace(case, score=ready, query=full["query"], key=full["key"], value=full["value"]))
    gradients = torch.autograd.grad(context, list(leaves.values()), slope, allow_unused=True, materialize_grads=True)
    return {"context": context.detach(), **dict(zip(leaves, gradients, strict=True))}


def _unexpanded(tensor: Tensor) -> Tensor:
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor


def _double(tensor: Tensor) -> Tensor:
    return _unexpanded(tensor.detach()).double().expand_as(tensor)


def _tensors(pairs: LoweredScore) -> dict[str, Tensor]:
    return {
        name: value
        for name, value in vars(pairs).items()
        if isinstance(value, Tensor) and name != "inverse_temperature"
    }


def _changed(pairs: LoweredScore, change: Callable[[Tensor], Tensor]) -> LoweredScore:
    changed: dict[str, Any] = {name: change(tensor) for name, tensor in _tensors(pairs).items()}
    if isinstance(pairs, LoweredAdditive):
        changed["exp_key"] = None
    return replace(pairs, **changed)


def _floors(
    pairs: LoweredScore, value: Tensor, slope: Tensor, case: Case
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """What 2^-24 of the absolute terms sum up to, by themselves and with those of the scores among them."""
    softmax, factors = _weigh(pairs, case)
    weights = softmax * factors
    derivatives = _derivatives(pairs, case)
    query, key = pairs.query[..., :, None, :], pairs.key[..., None, :, :]
    inner = (
        query if isinstance(pairs, LoweredDot) else query + key if isinstance(pairs, LoweredAdditive) else query - key
    )
    deep = 1.0 + plain_scores(pairs)[0].abs() + (derivatives["query"] * inner.abs()).sum(dim=-1)
    unit = torch.finfo(case.value.dtype).eps / 2

    def sums(weights: Tensor, softmax: Tensor) -> dict[str, Tensor]:
        through = slope.abs() @ value.abs().mT
        score_terms = weights * through + softmax * (weights * through).sum(dim=-1, keepdim=True)
        # Sums of absolute terms, and of their squares.
        totals = {"context": (weights @ value.abs(), weights.square() @ value.square())}
        totals["value"] = (weights.mT @ slope.abs(), weights.mT.square() @ slope.square())
        for name, derivative in derivatives.items():
            terms = score_terms[..., None] * derivative
            others = {"query": (-2,), "key": (-3,)}.get(name, tuple(range(terms.dim() - 1)))
            totals[name] = (terms.sum(dim=others), terms.square().sum(dim=others))
        # Roundings of the terms in the type itself add up to about the root.
        found = {name: torch.maximum(2.0**-24 * one, unit * two.sqrt()) for name, (one, two) in totals.items()}
        shapes = {name: _unexpanded(tensor).shape for name, tensor in {**_tensors(pairs), "value": value}.items()}
        return {name: floor.sum_to_size(shapes.get(name, floor.shape)) for name, floor in found.items()}

    return sums(weights, softmax), sums(weights * deep, softmax * deep)


def _derivatives(pairs: LoweredScore, case: Case) -> dict[str, Tensor]:
    """[*leading, query, key, size] of each score by all it is made of, without sign."""
    query = pairs.query[..., :, None, None, :].expand(*case.allowed.shape, 1, -1)
    key = pairs.key[..., None, :, None, :].expand(*case.allowed.shape, 1, -1)
    each = {"query": query, "key": key}
    # Every pair of query and key gets numbers of its own, so that one backward pass gives all derivatives apart.
    if isinstance(pairs, LoweredAdditive):
        each["vector"] = pairs.vector[:, None].expand(*case.allowed.shape, -1, 1)
    elif isinstance(pairs, LoweredDistance):
        each["bandwidth"] = pairs.bandwidth.expand(*case.allowed.shape, 1, 1, 1)
    leaves = {name: tensor.detach().clone().requires_grad_() for name, tensor in each.items()}
    if isinstance(pairs, LoweredAdditive):
        scores = torch.tanh(leaves["query"] + leaves["key"]) @ leaves["vector"]
    else:
        scores = plain_scores(replace(pairs, **leaves))[0]
    if not scores.requires_grad:
        return {name: torch.zeros_like(leaf).flatten(case.allowed.dim()) for name, leaf in leaves.items()}
    slopes = torch.autograd.grad(scores.sum(), list(leaves.values()), allow_unused=True, materialize_grads=True)
    return {name: slope.abs().flatten(case.allowed.dim()) for name, slope in zip(leaves, slopes, strict=True)}


def _largest(tensor: Tensor) -> float:
    return float(tensor.abs().max()) if tensor.numel() else 0.0

"""Random inputs for attention, and masks with what they allow said a second time, without tensors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import torch
from torch import Tensor

from heedful.attention.masks import Mask, causal, padding, window
from heedful.attention.scores import SCORES, Score

Allows = Callable[[int, int, int], bool]
"""(real keys, place of the query among the keys, key) -> whether the query may attend the key."""


@dataclass(frozen=True)
class MaskCase:
    """A mask, and what it should mean."""

    make: Callable[[Tensor], Mask | None]
    """Given the number of real keys of each item."""
    allows: Allows


MASKS: Mapping[str, MaskCase] = {
    "none": MaskCase(lambda n: None, lambda n, i, j: True),
    "padding": MaskCase(padding, lambda n, i, j: j < n),
    "causal": MaskCase(lambda n: causal(), lambda n, i, j: j <= i),
    "window": MaskCase(lambda n: window(2, 1), lambda n, i, j: i - 2 <= j <= i + 1),
    "diagonal": MaskCase(lambda n: window(0, 0), lambda n, i, j: i == j),
    "padding & causal": MaskCase(lambda n: padding(n) & causal(), lambda n, i, j: j < n and j <= i),
    "window & padding": MaskCase(lambda n: window(1, 0) & padding(n), lambda n, i, j: j < n and i - 1 <= j <= i),
    "padding | causal": MaskCase(lambda n: padding(n) | causal(), lambda n, i, j: j < n or j <= i),
    "~causal": MaskCase(lambda n: ~causal(), lambda n, i, j: j > i),
    "~padding": MaskCase(lambda n: ~padding(n), lambda n, i, j: j >= n),
    "causal & ~diagonal": MaskCase(lambda n: causal() & ~window(0, 0), lambda n, i, j: j < i),
    "~diagonal & ~padding": MaskCase(lambda n: ~window(0, 0) & ~padding(n), lambda n, i, j: j != i and j >= n),
    "~(padding & causal) | diagonal": MaskCase(
        lambda n: ~(padding(n) & causal()) | window(0, 0), lambda n, i, j: not (j < n and j <= i) or i == j
    ),
    "nothing": MaskCase(lambda n: causal() & ~causal(), lambda n, i, j: False),
}


@dataclass(frozen=True)
class Case:
    """Inputs of one call of `attend`."""

    score: Score
    query: Tensor
    key: Tensor
    value: Tensor
    mask: Mask | None
    allowed: Tensor
    """[*batch, query, key] bool, from the mask's meaning alone."""


def make_case(
    score: str = "scaled_dot",
    mask: str = "none",
    leading: tuple[int, ...] = (2,),
    num_queries: int = 3,
    num_keys: int = 4,
    size: int = 4,
    value_size: int = 3,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Case:
    """Draw inputs; dot scores get keys of the query's size, others of another size."""
    generator = torch.Generator().manual_seed(seed)
    key_size = size if "dot" in score else size + 1
    made = SCORES[score](size, key_size, size + 2).to(dtype)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))

    def draw(*shape: int) -> Tensor:
        return torch.randn(*leading, *shape, generator=generator, dtype=torch.float64).to(dtype)

    lengths = torch.randint(0, num_keys + 1, leading[:1], generator=generator)
    return Case(
        made,
        draw(num_queries, size),
        draw(num_keys, key_size),
        draw(num_keys, value_size),
        MASKS[mask].make(lengths),
        write_out(MASKS[mask].allows, lengths, leading, num_queries, num_keys),
    )


def write_out(allows: Allows, lengths: Tensor, leading: tuple[int, ...], num_queries: int, num_keys: int) -> Tensor:
    """Ask about every query and key; [*leading, query, key]."""
    allowed = torch.zeros(*leading, num_queries, num_keys, dtype=torch.bool)
    for place in product(*(range(n) for n in leading), range(num_queries), range(num_keys)):
        length = int(lengths[place[0]] if leading else lengths)
        allowed[place] = allows(length, place[-2] + num_keys - num_queries, place[-1])
    return allowed


def per_item(tensor: Tensor) -> list[Tensor]:
    """Split [*leading, a, b] into its [a, b] items."""
    return list(tensor.reshape(prod(tensor.shape[:-2]), *tensor.shape[-2:]))

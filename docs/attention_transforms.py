"""Table of what attention can be used in: second derivatives, `torch.func`, `torch.compile`, `torch.export`, ONNX.

Each cell is tried on a small call; tests/contracts/ proves the numbers.
"""

import logging
import warnings
from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor, nn
from torch.autograd import gradgradcheck
from torch.export import Dim

from heedful.attention.dispatch import attend
from heedful.attention.interface import Normalizer, Score
from heedful.attention.masks import padding
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES, Dot, Function
from heedful.attention.softmax import SOFTMAX

YES: Final = "yes"
NO: Final = "no"
FIXED: Final = "fixed numbers of queries and keys"
VALUES: Final = "in the values only"


class _Attend(nn.Module):
    """A call of `attend`, for compilers."""

    def __init__(self, score: Score, normalizer: Normalizer) -> None:
        super().__init__()
        self.score, self.normalizer = score, normalizer

    def forward(self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor) -> Tensor:
        mask = padding(lengths)
        return attend(query, key, value, score=self.score, normalizer=self.normalizer, mask=mask).context


def transform_tables() -> dict[str, list[tuple[str, ...]]]:
    """Try every score with softmax, and every normalizer with dot scores.

    Returns:
        "transforms": a row for each normalizer, and for the scores that answer alike.
    """
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, kind in (*SCORES.items(), ("function", None)):
        rows.setdefault(_row(kind, SOFTMAX), []).append(f"`{name}`")
    groups = [("all scores" if len(rows) == 1 else ", ".join(names), *row) for row, names in rows.items()]
    others = [(f"`{name}`", *_row(Dot, kind())) for name, kind in NORMALIZERS.items()]
    return {"transforms": [*groups, *others]}


def _products(query: Tensor, key: Tensor) -> Tensor:
    return query @ key.mT


_rows: Final[dict[tuple[type[Score] | None, type[Normalizer]], tuple[str, ...]]] = {}
"""Cells of mechanisms that were tried: pages in two languages, and tests that add one mechanism, share the others."""


def _row(kind: type[Score] | None, normalizer: Normalizer) -> tuple[str, ...]:
    """Cells of a mechanism; the score of no kind is a function."""
    key = (kind, type(normalizer))
    if key not in _rows:
        _rows[key] = _try(kind(4, 4, 8) if kind else Function(_products), normalizer)
    return _rows[key]


def _try(score: Score, normalizer: Normalizer) -> tuple[str, ...]:
    """Cells of a score and a normalizer, by calls."""
    call = _Attend(score, normalizer).double().requires_grad_(requires_grad=False)
    inputs = tuple(torch.randn(2, 4, 4, dtype=torch.float64) for _ in range(3))
    lengths = torch.tensor([4, 3])
    derivatives = YES if normalizer.has_gradient else VALUES
    return (
        derivatives if _works(lambda: _differentiate_twice(call, inputs, lengths, normalizer)) else NO,
        YES if _works(lambda: _transform(call, inputs, lengths)) else NO,
        YES if _works(lambda: torch.compile(call, backend="eager", fullgraph=True)(*inputs, lengths)) else NO,
        YES if _exports(call, inputs, lengths, True) else FIXED if _exports(call, inputs, lengths, False) else NO,
        NO if normalizer.why_not_exported() else YES,
    )


def _differentiate_twice(call: _Attend, inputs: tuple[Tensor, ...], lengths: Tensor, normalizer: Normalizer) -> object:
    query, key, value = (each.clone().requires_grad_() for each in inputs)
    if not normalizer.has_gradient:
        query, key = query.detach(), key.detach()
    if normalizer.is_random:
        # Two calls draw two keys; it is the operations that are tried.
        context = call(query, key, value, lengths).sin().sum()
        return torch.autograd.grad(torch.autograd.grad(context, value, create_graph=True)[0].sum(), value)
    return gradgradcheck(lambda *tensors: call(*tensors, lengths), (query, key, value), fast_mode=True)


def _transform(call: _Attend, inputs: tuple[Tensor, ...], lengths: Tensor) -> object:
    query, key, value = inputs

    def summed(moved: Tensor) -> Tensor:
        return call(query, key, moved, lengths).sin().sum()

    torch.func.vmap(lambda *each: call(*each, lengths[:1]), randomness="different")(
        *(tensor[:, None] for tensor in inputs)
    )
    # Jacobians are made of many calls, which must draw the same noise.
    call.normalizer = call.normalizer.seeded()
    torch.func.jacrev(lambda moved: call(moved, key, value, lengths))(query)
    return torch.func.hessian(summed)(value)


def _exports(call: _Attend, inputs: tuple[Tensor, ...], lengths: Tensor, is_free: bool) -> bool:
    batch = Dim("batch")
    query, key = (Dim("query"), Dim("key")) if is_free else (Dim.STATIC, Dim.STATIC)
    shapes = ({0: batch, 1: query}, {0: batch, 1: key}, {0: batch, 1: key}, {0: batch})
    # Numbers that differ, so that no symbol takes the place of another.
    free = (inputs[0][:, :3].contiguous(), inputs[1], inputs[2]) if is_free else inputs
    return _works(lambda: torch.export.export(call, (*free, lengths), dynamic_shapes=shapes))


def _works(operation: Callable[[], object]) -> bool:
    """Whether an operation raises nothing; PyTorch raises many kinds, and logs some of them first."""
    torch.compiler.reset()
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            operation()
    except Exception:  # of any kind: the table says that it does not work, and tests say why
        return False
    finally:
        logging.disable(logging.NOTSET)
    return True

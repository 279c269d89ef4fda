"""Additive scores of bfloat16 and float16 by features on tensor cores: a program in Triton called from PyTorch.

Its error is below what rounding to the inputs' type does anyway; where the range of the inputs asks for too many
features, scores are to be computed exactly.
"""

import importlib
import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, final

import torch
from torch import Tensor

from heedful.attention.kernels.additive.triton_ops import Sight
from heedful.attention.kernels.cauchy import SHARE, measure, nodes, rank_for

ROWS: Final = 128
"""Queries of a tile."""
COLUMNS: Final = 128
"""Keys of a tile."""


@final
@dataclass(frozen=True)
class Features:
    """What the features of one call are made with."""

    rank: int
    nodes: Tensor
    """[2, rank] float32, p_l and w_l."""
    shift: Tensor
    """[hidden] float32, taken from queries and put on keys."""
    is_split: bool
    """Whether a feature is two numbers of float16."""

    @staticmethod
    def choose(query: Tensor, key: Tensor, dtype: torch.dtype) -> "Features | None":
        """Measure the range of the inputs; waits for the device.

        Args:
            query: [query batch, query, hidden].
            key: [key batch, key, hidden].
            dtype: whose rounding the error must not exceed.

        Returns:
            The features, or None where exact scores are to be taken.
        """
        if dtype not in {torch.bfloat16, torch.float16}:
            return None
        measured, shift = measure(query.detach(), key.detach())
        # A few steps, so that nodes are found again, and no range of 0.
        half_range = float(measured)
        if not half_range < math.inf:
            return None
        half_range = max(0.25, math.ceil(half_range * 8.0) / 8.0)
        rank = rank_for(half_range, SHARE * torch.finfo(dtype).eps / 2.0)
        if rank is None:
            return None
        centres, weights = nodes(half_range, rank)
        table = torch.tensor([[math.exp(2.0 * centre) for centre in centres], list(weights)], dtype=torch.float32)
        return Features(rank, table.to(query.device), shift, dtype == torch.float16)


def fill_matched(
    scores: Tensor,
    query: Tensor,
    key: Tensor,
    vector: Tensor,
    features: Features,
    index: Tensor,
    sight: Sight | None = None,
    first_query: int = 0,
) -> None:
    """Score a strip of queries against all keys.

    Args:
        scores: [batch, query, key] float32, out; with `sight` only tiles in which a query sees a key are written.
        query: [query batch, query, hidden], the strip; features side by side.
        key: [key batch, key, hidden].
        vector: [hidden].
        features: from the whole call.
        index: [2 or 6, batch] int64.
        sight: intervals of all queries.
        first_query: number of the strip's first query among all.

    Cost: query * key * hidden * rank multiply-adds in float16 on tensor cores, three times that with `is_split`.
    """
    num_elements, num_queries, num_keys = scores.shape
    largest = vector.abs().amax().float()
    # A power of two, so that float16 holds the products.
    exponent = torch.where(largest.isfinite(), torch.frexp(largest).exponent, 0)
    scaled = torch.cat((torch.ldexp(vector.float(), -exponent), torch.ldexp(torch.ones_like(largest), exponent)[None]))
    start, stop, total = index, index, 0
    if sight is not None:
        start, stop, total = sight.start[:, first_query:], sight.stop[:, first_query:], sight.start.shape[1]
    grid = num_elements * -(-num_queries // ROWS) * -(-num_keys // COLUMNS)
    _programs().matched_tile[(grid,)](
        query, key, scaled, features.shift, features.nodes, index, start, stop, scores, num_elements, num_queries,
        num_keys, query.shape[-1], query.stride(0), *scores.stride()[:2], total,
        HAS_ROWS=sight is not None, IS_SPLIT=features.is_split, RANK=features.rank, ROWS=ROWS, COLUMNS=COLUMNS,
        num_warps=8,
    )  # fmt: skip


@cache
def _programs() -> Any:
    """The program; imported here because Triton is not installed everywhere."""
    return importlib.import_module("heedful.attention.kernels.cauchy_programs")

"""Kernel of attention by few queries or few keys in one pass on a CPU, such as the steps of a decoder."""

from collections.abc import Mapping
from typing import Final, final

import torch
from torch import Tensor

from heedful.attention.interface import Attended, Normalizer
from heedful.attention.kernels.interface import Kernel, Request
from heedful.attention.kernels.step.cpu_ops import few_queries
from heedful.attention.lowered import LoweredAdditive, LoweredDot, LoweredScore
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import Softmax
from heedful.cpu.availability import loops_problem
from heedful.cpu.threads import is_exact

# Bounds of the calls for which this kernel is faster than the others, measured by benchmarks/shapes.py --all --kernel.
FEW_QUERIES: Final = 2
"""Largest number of queries, whatever the number of keys."""
FEW_KEYS: Final = 15
"""Largest number of keys of dot scores with more queries: PyTorch's products with so few columns are slow."""
MOST_QUERIES: Final = 1024
"""Largest number of queries with few keys: several threads share the elements of a batch, not the queries of one."""
WIDE: Final = 128
"""Smallest number of features of dot scores for which `FEW_SCORES` holds."""
FEW_SCORES: Final = 512
"""Largest number of dot scores of a batch element with so many features."""
FEW_PRODUCTS: Final = 1 << 16
"""Largest number of multiply-adds of all dot scores: the shortest call of other kernels takes longer."""
FEW_TERMS: Final = 200_000
"""Largest number of tanh of all additive scores."""
FEW_SHARED: Final = 6
"""Largest product of the numbers of queries and keys over their sum, for additive scores. The other kernel first takes
an exponential of each query and key, which pays where many pairs share it."""
_TYPES: Final[Mapping[type[LoweredScore], frozenset[torch.dtype]]] = {
    LoweredDot: frozenset({torch.float32, torch.float64}),
    LoweredAdditive: frozenset({torch.float32}),
}


@final
class FewQueries(Kernel):
    """Scores, softmax and average of few queries or few keys in one loop, compiled by Numba."""

    name = "step_cpu"
    memory = "query * key"
    has_scale = True
    reads_hidden = False

    def supports(self, request: Request) -> str | None:
        types = _TYPES.get(request.pairs)
        if types is None:
            return "only dot and additive scores"
        if request.normalizer is not Softmax:
            return "only softmax"
        if more := request.need - {"weights"}:
            return f"gives context and weights only, not {', '.join(sorted(more))}"
        if request.mask == "dense" or request.has_gaussian or request.dropout:
            return "only intervals of keys, no table, no Gaussian, no dropout"
        if request.mode != "eager":
            return f"Numba kernels cannot be traced ({request.mode})"
        if request.device != "cpu":
            return "only on a CPU"
        if request.dtype not in types:
            return f"only {' and '.join(sorted(str(each).removeprefix('torch.') for each in types))} for such scores"
        return loops_problem()

    def declines_auto(self, request: Request) -> str | None:
        if is_exact():
            return "other kernels are used in exact decoding"
        queries, keys = request.num_queries, request.num_keys
        if request.pairs is LoweredDot:
            is_wide = request.num_features >= WIDE and queries * keys <= FEW_SCORES
            has_few_keys = keys <= FEW_KEYS and queries <= MOST_QUERIES
            is_few = has_few_keys or is_wide or request.num_numbers * request.num_features <= FEW_PRODUCTS
        else:
            is_few = request.num_numbers <= FEW_TERMS or (
                queries <= MOST_QUERIES and queries * keys <= FEW_SHARED * (queries + keys)
            )
        return None if queries <= FEW_QUERIES or is_few else "other kernels are faster for so many scores"

    def has_second_derivatives(self, request: Request) -> bool:
        return True

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        if not isinstance(pairs, LoweredDot | LoweredAdditive):
            raise TypeError(f"step_cpu: got {type(pairs).__name__}")
        context, weights = few_queries(pairs, value, rows)
        return Attended(context, self.name, weights=weights if "weights" in request.need else None)

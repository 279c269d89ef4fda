"""Kernel of attention by few queries in one pass on a CPU, such as the steps of a decoder."""

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

FEW_QUERIES: Final = 2
"""Number of queries up to which it is faster than other kernels; this and the next by benchmarks/shapes.py --kernel."""
FEW_SCORES: Final = 400
"""Number of scores of a batch element up to which more queries are, but for the gradients of dot scores."""
_TYPES: Final[Mapping[type[LoweredScore], frozenset[torch.dtype]]] = {
    LoweredDot: frozenset({torch.float32, torch.float64}),
    LoweredAdditive: frozenset({torch.float32}),
}


@final
class FewQueries(Kernel):
    """Scores, softmax and average of few queries in one loop, compiled by Numba."""

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
        if request.num_queries <= FEW_QUERIES:
            return None
        if request.wants_gradient and request.pairs is LoweredDot:
            return f"the gradients of other kernels are faster for more than {FEW_QUERIES} queries"
        is_small = request.num_queries * request.num_keys <= FEW_SCORES
        return None if is_small else "other kernels are faster for so many scores"

    def has_second_derivatives(self, request: Request) -> bool:
        return True

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        if not isinstance(pairs, LoweredDot | LoweredAdditive):
            raise TypeError(f"step_cpu: got {type(pairs).__name__}")
        context, weights = few_queries(pairs, value, rows)
        return Attended(context, self.name, weights=weights if "weights" in request.need else None)

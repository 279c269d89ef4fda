"""Kernel of Nadaraya-Watson attention in one pass on a CPU; scores and weights are never written to memory."""

from typing import final

from torch import Tensor

from heedful.attention.interface import Attended, Normalizer
from heedful.attention.kernels.distance.cpu_ops import distance_attention
from heedful.attention.kernels.distance.cpu_ops import supports as supports_type
from heedful.attention.kernels.interface import Kernel, Request
from heedful.attention.lowered import LoweredDistance, LoweredScore
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.softmax import Softmax


@final
class FusedDistance(Kernel):
    """Distances, kernel, softmax and average in one loop, compiled by Numba."""

    name = "distance_cpu"
    memory = "query + key"

    def supports(self, request: Request) -> str | None:
        if request.pairs is not LoweredDistance:
            return "only distance scores"
        if request.normalizer is not Softmax:
            return "only softmax"
        if more := request.need - {"log_normalizer"}:
            return f"gives context and log_normalizer only, not {', '.join(sorted(more))}"
        if request.mask == "dense" or request.has_gaussian or request.dropout:
            return "only intervals of keys, no table, no Gaussian, no dropout"
        if request.mode != "eager":
            return f"Numba kernels cannot be traced ({request.mode})"
        return supports_type(request.dtype, request.device, request.profile)

    def run(
        self, pairs: LoweredScore, value: Tensor, rows: MaskBounds | None, normalizer: Normalizer, request: Request
    ) -> Attended:
        if not isinstance(pairs, LoweredDistance):
            raise TypeError(f"distance_cpu: got {type(pairs).__name__}")
        start, stop = (None, None) if rows is None else rows.bounds(len(pairs.leading))
        context, log_normalizer = distance_attention(
            pairs.query, pairs.key, value, pairs.bandwidth, pairs.profile, pairs.inverse_temperature, start, stop
        )
        has_log = "log_normalizer" in request.need
        return Attended(context, self.name, log_normalizer=log_normalizer if has_log else None)

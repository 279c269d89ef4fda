"""Score kernel of additive scores on a CPU, without an array [query, key, hidden]; the tiled driver does the rest."""

from typing import final

from torch import Tensor

from heedful.attention.kernels.additive.cpu_ops import additive_scores, is_quick
from heedful.attention.kernels.additive.cpu_ops import supports as supports_type
from heedful.attention.kernels.interface import Request, ScoreKernel
from heedful.attention.lowered import LoweredAdditive, LoweredScore
from heedful.cpu.threads import is_exact


@final
class AdditiveScores(ScoreKernel):
    """Additive scores in exponential form, compiled by Numba."""

    name = "additive_cpu"

    def supports(self, request: Request) -> str | None:
        if request.pairs is not LoweredAdditive:
            return "only additive scores"
        if request.mode != "eager":
            return f"Numba kernels cannot be traced ({request.mode})"
        return supports_type(request.dtype, request.device)

    def declines_auto(self, request: Request) -> str | None:
        if is_quick(request.num_numbers, request.dtype):
            return "plain operations are faster for so few numbers"
        # The range of all keys of a batch decides how features are grouped.
        return "the last bits of a row depend on the rows beside it" if is_exact() else None

    def scores(self, pairs: LoweredScore) -> tuple[Tensor, Tensor | None]:
        if not isinstance(pairs, LoweredAdditive):
            raise TypeError(f"additive_cpu: got {type(pairs).__name__}")
        return additive_scores(pairs.query, pairs.key, pairs.vector, pairs.exp_key), None

    def numbers_per_score(self, pairs: LoweredScore) -> int:
        return 1

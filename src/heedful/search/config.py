"""How to search: the beam, the penalties and the limits."""

from typing import Literal, Self, final

from pydantic import Field, model_validator

from heedful.config import Config


@final
class SearchConfig(Config):
    """Settings of `heedful.search.beam.search`; the defaults rank as CTranslate2 does with length penalty 1.

    Attributes:
        beam: hypotheses carried per source; 1 is greedy search.
        nbest: hypotheses returned per source, at most `beam`.
        length_penalty: what log_prob is divided by: `power` is length^alpha, `gnmt` is ((5 + length) / 6)^alpha.
        alpha: exponent of the length penalty; 0 ranks by log_prob alone, larger values favour longer outputs.
        beta: weight of GNMT's coverage penalty; above 0, outputs that leave source positions unattended rank lower.
        max_length_ratio: an output has at most ratio * source length + `max_length_offset` tokens.
        max_length_offset: see `max_length_ratio`; both lengths count tokens, the output's with its end mark.
        min_length: an output has at least this many tokens before its end mark, unless its cap is lower.
        forbid_unknown: never generate the unknown token.
    """

    beam: int = Field(default=5, ge=1)
    nbest: int = Field(default=1, ge=1)
    length_penalty: Literal["power", "gnmt"] = "power"
    alpha: float = Field(default=1.0, ge=0, le=100, allow_inf_nan=False)
    beta: float = Field(default=0.0, ge=0, le=100, allow_inf_nan=False)
    max_length_ratio: float = Field(default=3.0, ge=0, le=1000, allow_inf_nan=False)
    max_length_offset: int = Field(default=50, ge=0, le=1_000_000)
    min_length: int = Field(default=0, ge=0)
    forbid_unknown: bool = False

    @model_validator(mode="after")
    def _nbest_fits(self) -> Self:
        if self.nbest > self.beam:
            raise ValueError(f"nbest {self.nbest} is more than beam {self.beam}; raise beam or lower nbest")
        return self

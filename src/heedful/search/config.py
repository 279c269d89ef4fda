"""Search settings: method, beam, penalties and limits."""

from typing import Final, Literal, Self, final

from pydantic import Field, model_validator

from heedful.config.base import Config, validate
from heedful.errors import ConfigError

MOST_HYPOTHESES: Final = 1000
"""Upper bound of the hypotheses carried for a source, which all need memory at once."""
_SAMPLING_ONLY = ("temperature", "top_k", "top_p", "min_p")


@final
class SearchConfig(Config):
    """Settings of `heedful.search.beam.search`; the defaults rank as CTranslate2 does with length penalty 1.

    Attributes:
        method: `beam` looks for the most probable outputs, `sampling` draws outputs at random.
        beam: hypotheses carried per source; 1 is greedy search, and required for sampling.
        nbest: outputs returned per source: at most `beam` of a beam search, or the number of samples.
        num_groups: groups of diverse beam search, which look for outputs unlike each other's; 1 is plain beam search.
        diversity: penalty of a token, in nats for each hypothesis of an earlier group that took it at the same step.
        temperature: when sampling, log probabilities are divided by it; 0 takes the most probable token.
        top_k: sample among this many most probable tokens; 0 is all of them.
        top_p: sample among the fewest tokens that together have this probability; 1 is all of them.
        min_p: sample among the tokens at least this fraction as probable as the most probable one; 0 is all of them.
        seed: seed of the random numbers of sampling.
        length_penalty: divisor of log_prob: `power` is length^alpha, `gnmt` is ((5 + length) / 6)^alpha.
        alpha: exponent of the length penalty; 0 ranks by log_prob alone, larger values favour longer outputs.
        length_reward: added to the score for each token.
        beta: weight of GNMT's coverage penalty; above 0, outputs that leave source positions unattended rank lower.
        repetition_penalty: factor on the log probability of a token that the output already contains.
        no_repeat_ngram_size: length of token sequences that may not occur twice in an output; 0 is no such limit.
        max_length_ratio: an output has at most ratio * source length + `max_length_offset` tokens.
        max_length_offset: see `max_length_ratio`; both lengths count tokens, the output's with its EOS.
        min_length: an output has at least this many tokens before its EOS, unless its length limit is lower.
        forbid_unknown: never generate the unknown token.
        replace_unknown: once the search is over, an unknown word of an output is replaced by the translation of the
            source word it attends to, or by that word itself (`heedful.engines.unknown_words`).
        shortlist: consider only the vocabulary shortlist of the sources, in engines that were exported with one; others
            consider the whole vocabulary.
        stopping: when the search of a source ends: `likely` once `beam` outputs have ended and no live hypothesis
            scores higher now, `full` once none scores higher than the worst of them, `certain` once none can enter the
            `nbest` any more (`heedful.search.stopping`).

    Example:
        >>> SearchConfig(method="sampling", beam=1, nbest=3, top_k=10).temperature
        1.0
    """

    method: Literal["beam", "sampling"] = "beam"
    beam: int = Field(default=5, ge=1, le=MOST_HYPOTHESES)
    nbest: int = Field(default=1, ge=1, le=10_000)
    num_groups: int = Field(default=1, ge=1, le=MOST_HYPOTHESES)
    diversity: float = Field(default=0.0, ge=0, le=1000)
    temperature: float = Field(default=1.0, ge=0, le=1000)
    top_k: int = Field(default=0, ge=0, le=1_000_000)
    top_p: float = Field(default=1.0, gt=0, le=1)
    min_p: float = Field(default=0.0, ge=0, le=1)
    seed: int = Field(default=1, ge=0, lt=2**63)
    length_penalty: Literal["power", "gnmt"] = "power"
    alpha: float = Field(default=1.0, ge=0, le=100)
    length_reward: float = Field(default=0.0, ge=0, le=1000)
    beta: float = Field(default=0.0, ge=0, le=100)
    repetition_penalty: float = Field(default=1.0, ge=1, le=1000)
    no_repeat_ngram_size: int = Field(default=0, ge=0, le=1_000_000)
    max_length_ratio: float = Field(default=3.0, ge=0, le=1000)
    max_length_offset: int = Field(default=50, ge=0, le=1_000_000)
    min_length: int = Field(default=0, ge=0, le=1_000_000)
    forbid_unknown: bool = False
    replace_unknown: bool = False
    shortlist: bool = False
    stopping: Literal["likely", "full", "certain"] = "likely"

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        fault = self._fault_of_sampling() if self.method == "sampling" else self._fault_of_beam()
        if fault:
            raise ValueError(fault)
        return self

    @property
    def num_rows(self) -> int:
        """Number of searches run side by side for a source: one for each sample, or for each group of the beam."""
        return self.nbest if self.method == "sampling" else self.num_groups

    @property
    def row_size(self) -> int:
        """Number of hypotheses carried by each of these searches."""
        return 1 if self.method == "sampling" else self.beam // self.num_groups

    @property
    def width(self) -> int:
        """Number of hypotheses that an engine carries for a source: `num_rows` * `row_size`."""
        return self.num_rows * self.row_size

    def _fault_of_sampling(self) -> str:
        if self.beam > 1:
            return f"method sampling carries no beam, got beam {self.beam}; set beam = 1, and nbest to draw several"
        if self.num_groups > 1 or self.diversity > 0:
            return "num_groups and diversity are for method beam; leave them out or set method = beam"
        if self.stopping != "likely":
            return f"stopping {self.stopping} is for method beam; samples end by themselves, leave it out"
        if self.temperature == 0 and self.nbest > 1:
            return f"temperature 0 draws the same output {self.nbest} times; set nbest = 1 or a higher temperature"
        return ""

    def _fault_of_beam(self) -> str:
        fields = type(self).model_fields
        for name in _SAMPLING_ONLY:
            if (value := getattr(self, name)) != fields[name].default:
                return f"{name} {value} is for method sampling; leave it out, or set method = sampling and beam = 1"
        if self.nbest > self.beam:
            return f"nbest {self.nbest} is more than beam {self.beam}; raise beam or lower nbest"
        if self.beam % self.num_groups:
            return f"beam {self.beam} cannot be split into {self.num_groups} groups of one size; choose a multiple"
        if self.num_groups > 1 and self.diversity == 0:
            return f"num_groups {self.num_groups} with diversity 0 finds everything {self.num_groups} times; raise it"
        if self.num_groups == 1 and self.diversity > 0:
            return f"diversity {self.diversity} needs num_groups of 2 or more; set num_groups or leave it out"
        return ""


def with_outputs(config: SearchConfig, beam: int = 0, nbest: int = 1) -> SearchConfig:
    """Return settings for a number of outputs, with a beam that has room for them.

    Args:
        config: all other settings.
        beam: hypotheses carried per source; 0 = as configured.
        nbest: number of outputs. A smaller beam grows to this number, by whole groups; sampling draws as many.

    Raises:
        ConfigError: the settings do not fit together, or a beam has no room for so many outputs.

    Example:
        >>> with_outputs(SearchConfig(beam=4, num_groups=2, diversity=0.5), nbest=5).beam
        6
        >>> with_outputs(SearchConfig(method="sampling", beam=1), nbest=5).beam
        1
    """
    carried = beam or config.beam
    if config.method == "beam" and carried < nbest:
        carried = -(-nbest // config.num_groups) * config.num_groups
        if carried > MOST_HYPOTHESES:
            most = MOST_HYPOTHESES // config.num_groups * config.num_groups
            raise ConfigError(f"nbest {nbest}: a beam search gives at most {most:,} outputs; sampling gives more")
    return validate(SearchConfig, config.model_dump(mode="json") | {"beam": carried, "nbest": nbest}, "search")

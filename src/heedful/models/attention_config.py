"""Attention configuration: score, normalizer and window of one attention, and functions that build them.

Every model takes this configuration for each of its attentions, so that any score, normalizer and window can be used in
any model; combinations that cannot work are refused before training, in one line.
"""

from collections.abc import Callable, Mapping
from functools import cache
from inspect import signature
from typing import Any, Final, Literal, Self, cast, final

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from heedful.attention.biases import BIASES, Biased, ScoreBias
from heedful.attention.dispatch import why_refused
from heedful.attention.interface import Need, Normalizer, Score
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.config.base import MOST_SIZE, Config
from heedful.config.plugins import import_class, import_class_or_function, is_custom
from heedful.errors import HeedfulError, did_you_mean
from heedful.layers.projected_score import ProjectedScore
from heedful.layers.summed_score import SummedScore
from heedful.models.reinforcement import Reinforcement, Reward, is_drawn

WindowKind = Literal["global", "local-m", "local-p"]
"""Source positions that a target position attends; Luong et al. 2015, arXiv:1508.04025, section 3."""

Role = Literal["source", "encoder", "decoder"]
"""Role of an attention in a model: cross-attention of a decoder, or self-attention of encoder or decoder."""


class AttentionConfig(Config):
    """Score, normalizer and window of one attention; `heedful list` names all scores and normalizers."""

    score: str = "scaled_dot"
    """Name of the score that compares queries and keys, or module:Class or module:function of one outside the
    package."""
    bias: str = "none"
    """Name of the bias by positions that is added to the scores of self-attention, or module:Class of one outside the
    package; none = no bias."""
    normalizer: str = "softmax"
    """Name of the normalizer that turns scores into weights, or module:Class of one outside the package."""
    window: WindowKind = "global"
    """global: all positions are attended; local-m: those around p_t = t; local-p: those around p_t = S sigmoid(v_p .
    tanh(W_p h_t)), weighted by a Gaussian."""
    hidden_size: int = Field(default=0, ge=0, le=MOST_SIZE)
    """Hidden units of additive and concat scores, 0 = the size of a query; positions of the location score, 0 = 50."""
    projection_size: int = Field(default=0, ge=0, le=MOST_SIZE)
    """Size that queries and keys are projected to before they are compared; 0 = no projection."""
    has_query_bias: bool = False
    """Whether the additive score adds a learned vector to the mapped query."""
    bandwidth: float = Field(default=1.0, gt=0.0, le=1e6)
    """Bandwidth of the kernel, for distance scores."""
    num_buckets: int = Field(default=32, ge=2, le=1024)
    """Buckets of relative positions, for relative_buckets."""
    max_distance: int = Field(default=0, ge=0, le=65536)
    """Distance from which on relative positions are not told apart; 0 = 128 for relative_buckets, 16 for
    relative_keys."""
    temperature: float = Field(default=1.0, gt=0.0, le=1e6)
    """Divisor of the scores, for normalizers that have one."""
    alpha: float = Field(default=1.5, ge=1.0, le=1e6)
    """Order of entmax: 1 is softmax, 2 is sparsemax."""
    is_hard: bool = False
    """Whether gumbel_softmax attends to the drawn key alone, with the gradient of the relaxed weights."""
    is_single_root: bool = False
    """Whether exactly one word depends on the root of a projective tree."""
    half_width: int = Field(default=10, ge=1, le=MOST_SIZE)
    """D: a window is [p_t - D, p_t + D], and sigma of local-p is D / 2."""
    softmax_over: Literal["window", "source", "cut"] = "window"
    """Positions that the normalizer of local-p runs over: the window, the whole source, or the whole source, of which
    only the window keeps its weights."""
    past_source: Literal["nothing", "last"] = "nothing"
    """Window of local-m for t beyond the source: empty from t = S + D on, as p_t = t implies, or always the last D
    words, as in the authors' code."""
    has_coverage: bool = False
    """Whether scores depend on the coverage c_j of a source position, the sum of its weights in earlier steps: the
    mapped key k_j becomes k_j + w c_j, w learned; See et al. 2017, arXiv:1704.04368, eq. 11. For recurrent decoders."""
    coverage_weight: float = Field(default=0.0, ge=0.0, le=1e6)
    """Weight of the coverage loss sum_j min(a_tj, c_j) of each step; See et al. 2017, eq. 12 and 13, with 1."""
    location_filters: int = Field(default=0, ge=0, le=MOST_SIZE)
    """Filters of a convolution over the weights of the step before, whose outputs f_j are added to the mapped keys,
    k_j + U f_j: location-sensitive attention, Chorowski et al. 2015, arXiv:1506.07503, eq. 8 and 9; 0 = none. For
    recurrent decoders."""
    location_width: int = Field(default=15, ge=1, le=1001)
    """Positions that a filter sees, an odd number; 201 frames of speech in the paper."""
    chunk_width: int = Field(default=1, ge=1, le=1000)
    """w, keys of a chunk, of which monotonic attention chooses the last and a second score weighs all: MoChA, Chiu and
    Raffel 2018, arXiv:1712.05382; 1 = the chosen key alone. For recurrent decoders."""
    has_sentences: bool = False
    """Whether a word's score is added to that of its sentence: hierarchical attention, Nallapati et al. 2016,
    arXiv:1602.06023, section 2.4. For recurrent decoders; sentences end in EOS, see text.split_sentences."""
    reward: Reward = "token"
    """Reward of a drawn key if the normalizer is sampled: the log probability of its token, or of the whole sentence,
    as in Xu et al. 2015."""
    reward_weight: float = Field(default=1.0, ge=0.0, le=1e6)
    """lambda_r of Xu et al. 2015, section 4.1."""
    entropy_weight: float = Field(default=0.01, ge=0.0, le=1e6)
    """lambda_e of Xu et al. 2015, section 4.1: weight of the entropy bonus."""
    baseline_decay: float = Field(default=0.9, ge=0.0, lt=1.0)
    """Decay of the moving baseline per batch."""

    @field_validator("score")
    @classmethod
    def _check_score(cls, name: str) -> str:
        if name not in SCORES and not is_custom(name):
            raise ValueError(f"no score {name!r}{did_you_mean(name, SCORES)}")
        return name

    @field_validator("bias")
    @classmethod
    def _check_bias(cls, name: str) -> str:
        if name not in {"none", *BIASES} and not is_custom(name):
            raise ValueError(f"no bias {name!r}{did_you_mean(name, ('none', *BIASES))}")
        return name

    @field_validator("normalizer")
    @classmethod
    def _check_normalizer(cls, name: str) -> str:
        if name not in NORMALIZERS and not is_custom(name):
            raise ValueError(f"no normalizer {name!r}{did_you_mean(name, NORMALIZERS)}")
        return name

    @model_validator(mode="after")
    def _check_settings(self) -> Self:
        owners = {
            f"the score {self.score}": (_SCORE_SETTINGS, _settings_of(score_class(self.score))),
            f"the bias {self.bias}": (_BIAS_SETTINGS, _settings_of(bias_class(self.bias))),
            f"the normalizer {self.normalizer}": (_SETTINGS, _settings_of(normalizer_class(self.normalizer))),
        }
        for owner, (names, known) in owners.items():
            for name in names:
                if name not in known and getattr(self, name) != type(self).model_fields[name].default:
                    raise ValueError(f"{name} {getattr(self, name)}: {owner} has no {name}")
        if self.location_width % 2 == 0:
            raise ValueError(
                f"location_width {self.location_width}: expected an odd number, so that filters have a middle"
            )
        if self.chunk_width > 1 and not self.is_monotonic:
            raise ValueError(f"chunk_width {self.chunk_width}: chunks end where normalizer monotonic stops; take it")
        if self.chunk_width > 1 and self.has_sentences:
            raise ValueError("chunk_width with has_sentences: chunks are of words alone; leave one out")
        return self

    @property
    def changes_keys(self) -> bool:
        """Whether the keys of a step depend on the weights of earlier ones."""
        return self.has_coverage or self.location_filters > 0

    @property
    def remembers_weights(self) -> bool:
        """Whether a step depends on the weights of earlier ones: its score, or its normalizer."""
        return self.changes_keys or self.is_monotonic

    @property
    def is_monotonic(self) -> bool:
        """Whether the normalizer goes on from the weights of the step before."""
        return build_normalizer(self).has_memory


_SUMMABLE: Final = ("general", "additive", "concat")
"""Scores whose keys of any size are mapped, so that a word and its sentence have one each."""
_SETTINGS: Final = ("temperature", "alpha", "is_hard", "is_single_root")
"""Settings that apply to a normalizer if its constructor takes them."""
_SCORE_SETTINGS: Final = ("bandwidth", "has_query_bias")
"""Settings that apply to a score if its constructor takes them."""
_BIAS_SETTINGS: Final = ("num_buckets", "max_distance")
"""Settings that apply to a bias if its constructor takes them."""


def score_class(name: str) -> type[Score]:
    """Find a score by its name.

    Args:
        name: in `SCORES`, ``module:Class``, or ``module:function``.
    """
    if not is_custom(name):
        return SCORES[name]
    part = import_class_or_function(name, Score)
    return part if isinstance(part, type) else _class_of(part)


@cache
def _class_of(function: Callable[[Tensor, Tensor], Tensor]) -> type[Score]:
    """Class whose scores are those of a function, for queries and keys of any size."""

    @final
    class FunctionScore(Score):
        def forward(self, query: Tensor, key: Tensor) -> Tensor:
            return function(query, key)

    return FunctionScore


def bias_class(name: str) -> type[ScoreBias] | None:
    """Find a bias by its name.

    Args:
        name: in `BIASES`, ``module:Class``, or ``none``.

    Returns:
        The class; None = no bias.
    """
    return import_class(name, ScoreBias) if is_custom(name) else BIASES.get(name)


def normalizer_class(name: str) -> type[Normalizer]:
    """Find a normalizer by its name.

    Args:
        name: in `NORMALIZERS`, or ``module:Class``.
    """
    return import_class(name, Normalizer) if is_custom(name) else NORMALIZERS[name]


def build_score(
    config: AttentionConfig,
    query_size: int,
    key_size: int,
    num_heads: int = 0,
    role: Role = "source",
    sentence_size: int = 0,
) -> Score:
    """Make the score with fresh parameters, and its bias if there is one.

    Args:
        num_heads: 0 = the queries have no head axis.
        role: which queries meet which keys.
        sentence_size: features of a sentence's state, which follow those of a key; 0 = none.

    Returns:
        The score, for queries and keys of these sizes.

    Raises:
        ShapeError: the score requires equal sizes, and they differ.
    """
    score = _build_content_score(config, query_size, key_size)
    if sentence_size:
        score = SummedScore(score, _build_content_score(config, query_size, sentence_size))
    kind = bias_class(config.bias)
    if kind is None:
        return score
    # Zero stands for the value that the bias has by itself.
    settings: dict[str, Any] = {name: getattr(config, name) for name in _settings_of(kind) if getattr(config, name)}
    return Biased(score, kind(num_heads, query_size, is_causal=role == "decoder", **settings))


def _build_content_score(config: AttentionConfig, query_size: int, key_size: int) -> Score:
    kind = score_class(config.score)
    settings: dict[str, Any] = {name: getattr(config, name) for name in _settings_of(kind)}
    if not config.projection_size:
        return kind(query_size, key_size, config.hidden_size, **settings)
    inner = kind(config.projection_size, config.projection_size, config.hidden_size, **settings)
    return ProjectedScore(query_size, key_size, inner)


def build_normalizer(config: AttentionConfig) -> Normalizer:
    """Make the normalizer, with the settings that apply to it."""
    kind = normalizer_class(config.normalizer)
    return kind(**{name: getattr(config, name) for name in _settings_of(kind)})


def _settings_of(kind: type[Score] | type[ScoreBias] | type[Normalizer] | None) -> set[str]:
    return set() if kind is None else {*signature(kind).parameters} & {*_SETTINGS, *_SCORE_SETTINGS, *_BIAS_SETTINGS}


def build_reinforcement(config: AttentionConfig) -> Reinforcement:
    """Make the REINFORCE loss of drawn keys.

    Returns:
        The loss; it has no terms if no keys are drawn.
    """
    weights = config.reward_weight, config.entropy_weight
    return Reinforcement(build_normalizer(config), config.reward, *weights, config.baseline_decay)


def require_suitable(
    config: AttentionConfig, query_size: int, key_size: int, num_heads: int = 0, role: Role = "source", name: str = ""
) -> None:
    """Refuse an attention that cannot be trained, or not in this role.

    Args:
        query_size: features of a query, per head if there are heads.
        num_heads: 0 = the queries have no head axis.
        role: which queries meet which keys.
        name: key of the attention in the model, for the message.

    Raises:
        ValueError: the reason, in one line, for the validation of a configuration.
    """
    if reason := why_unsuitable(config, query_size, key_size, num_heads, role):
        words = [
            config.score,
            *([config.bias] if config.bias != "none" else []),
            config.normalizer,
            *([config.window] if config.window != "global" else []),
        ]
        raise ValueError(f"{name or 'attention'}: {' with '.join(words)}: {reason}")


def why_unsuitable(
    config: AttentionConfig, query_size: int, key_size: int, num_heads: int = 0, role: Role = "source"
) -> str:
    """Say why an attention cannot be trained, or not in this role.

    Args:
        num_heads: 0 = the queries have no head axis.
        role: which queries meet which keys.

    Returns:
        The reason; empty = suitable.
    """
    normalizer = build_normalizer(config)
    if not normalizer.has_gradient and not is_drawn(normalizer):
        return "no gradient reaches the score, so it cannot be learned; straight_through attends to the same key"
    if role != "source" and is_drawn(normalizer):
        return "drawn keys of self-attention get no reward; gumbel_softmax draws keys and has a gradient"
    if role == "source" and config.bias != "none":
        return "a bias by positions needs queries and keys of one sequence, as in self-attention"
    if (config.remembers_weights or config.coverage_weight) and (num_heads or role != "source"):
        name = "coverage is" if config.has_coverage or config.coverage_weight else "location filters are"
        if config.is_monotonic:
            name = "weights that go on from those of the word before are"
        return f"{name} for decoders that attend step by step: rnnsearch, luong and show_attend_tell"
    if config.changes_keys and score_class(config.score).is_positional:
        name = "coverage is" if config.has_coverage else "what location filters see is"
        return f"{name} added to keys, which this score does not read"
    if config.has_sentences and (num_heads or role != "source"):
        return "sentences are attended to by recurrent decoders: rnnsearch and luong"
    if config.has_sentences and config.score not in _SUMMABLE:
        return f"scores of words and sentences are added in {', '.join(_SUMMABLE)}"
    if config.window == "local-p" and num_heads:
        return "local-p predicts its centre from the state of a recurrent decoder; with heads use local-m"
    leading = (0, num_heads) if num_heads else (0,)
    # A decoder step has one query and any number of keys.
    num_queries, num_keys = (3, 3) if role == "encoder" else (1, 3)
    need: tuple[Need, ...] = ("weights", *(("log_prob", "entropy") if is_drawn(normalizer) else ()))
    try:
        # Nothing is drawn or computed: the parameters have no content, and the batch is empty.
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            score = build_score(config, query_size, key_size, num_heads, role)
    except HeedfulError as error:
        return str(error)
    _give_room(score)
    query, key = torch.empty(*leading, num_queries, query_size), torch.empty(*leading, num_keys, key_size)
    return why_refused(query, key, key, score=score, normalizer=normalizer, need=need)


def _give_room(module: nn.Module) -> None:
    """Replace meta parameters by empty ones on the CPU, because the meta device makes torch import a compiler."""
    for part in module.modules():
        for name, parameter in [*part.named_parameters(recurse=False)]:
            setattr(part, name, nn.Parameter(torch.empty(parameter.shape), requires_grad=False))


def is_scaled_dot_softmax(config: AttentionConfig) -> bool:
    """Tell whether an attention is that of Vaswani et al. 2017, eq. 1, the only one of fused operations.

    Returns:
        Whether its weights are softmax(q . k / sqrt(depth)) over all positions.
    """
    names = ("score", "bias", "normalizer", "window", "projection_size", "temperature")
    return all(getattr(config, name) == AttentionConfig.model_fields[name].default for name in names)


_MOVED: Final[Mapping[str, str]] = {
    "score": "score",
    "alignment_size": "hidden_size",
    "window": "window",
    "half_width": "half_width",
    "softmax_over": "softmax_over",
    "past_source": "past_source",
}
"""Former settings of models, and their names in `AttentionConfig`."""


def upgrade_attention(model: object) -> object:
    """Move a model's former attention settings into `AttentionConfig`.

    Args:
        model: the table ``model`` of a configuration; a value of another type is returned unchanged.

    Returns:
        The table with a table ``attention``; former settings override its values.

    Example:
        >>> upgrade_attention({"kind": "luong", "score": "dot"})
        {'kind': 'luong', 'attention': {'score': 'dot'}}
    """
    if not isinstance(model, Mapping) or not _MOVED.keys() & model.keys():
        return model
    table = cast(Mapping[str, Any], model)
    attention = table.get("attention", {})
    moved = {new: table[old] for old, new in _MOVED.items() if old in table}
    if isinstance(attention, AttentionConfig):
        attention = attention.model_dump(exclude_unset=True)
    rest = {key: value for key, value in table.items() if key not in _MOVED}
    return {**rest, "attention": {**attention, **moved}} if isinstance(attention, Mapping) else {**rest, **moved}

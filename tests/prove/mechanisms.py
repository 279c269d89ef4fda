"""Small models with every score, normalizer and window, and what training each for a few steps shows.

A combination is trained on a batch that is small enough to be learned by heart. It passes if its loss stays finite and
falls, and if its scores receive a gradient that is finite and, where they depend on their query, is not zero: a decoder
learns something even where its attention cannot.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from heedful.attention.interface import PreparedKey
from heedful.attention.lowered import LoweredScore
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.config.base import Config, validate
from heedful.errors import ConfigError
from heedful.models.interface import Seq2Seq
from heedful.models.luong import LuongConfig
from heedful.models.rnnsearch import RNNsearchConfig
from heedful.models.transformer import TransformerConfig
from heedful.training.pair_step import PairStep
from tests.models.tiny import make_sources, make_targets

NUM_STEPS = 50
NUM_TOKENS = 11
FALL = 0.9
"""Most that is left of the loss of the first steps after the last ones."""
FLAT = frozenset({"uniform", "constant", "boxcar"})
"""Scores that do not change with their query, or only in jumps."""
NEAR = frozenset({"boxcar", "triangular", "epanechnikov"})
"""Scores that nothing beyond their bandwidth has."""

VARIANTS: dict[str, dict[str, object]] = {
    "softmax": {"normalizer": "softmax"},
    "temperature": {"normalizer": "softmax", "temperature": 0.5},
    **{name: {"normalizer": name} for name in NORMALIZERS if name != "softmax"},
}
WINDOWS = ("global", "local-m", "local-p")

_RECURRENT = {"embedding_size": 8, "hidden_size": 8, "dropout": 0.0}
MODELS: dict[str, tuple[type[Config], dict[str, object], str, tuple[str, ...]]] = {
    "RNNsearch": (RNNsearchConfig, {**_RECURRENT, "maxout_size": 8}, "attention", WINDOWS),
    "Luong": (LuongConfig, {**_RECURRENT, "num_layers": 1, "output_dropout": 0.0}, "attention", WINDOWS),
    **{
        f"Transformer, {key}": (
            TransformerConfig,
            {
                "num_encoder_layers": 1,
                "num_decoder_layers": 1,
                "model_size": 16,
                "num_heads": 2,
                "feedforward_size": 16,
                "dropout": 0.0,
            },
            key,
            ("global",) if key != "attention" else ("global", "local-m"),
        )
        for key in ("attention", "encoder_attention", "decoder_attention")
    },
}
"""Name -> class of the configuration, sizes, key of the attention that varies, its windows."""


@dataclass(frozen=True)
class Combination:
    """One mechanism in one model."""

    model: str
    score: str
    variant: str
    window: str

    def __str__(self) -> str:
        return f"{self.model}: {self.score} x {self.variant} x {self.window}"

    def settings(self) -> dict[str, object]:
        """The attention; scores of points of one space get one in RNNsearch, whose states differ in size."""
        attention = {"score": self.score, "window": self.window, "half_width": 3, **VARIANTS[self.variant]}
        attention |= {"bandwidth": 8.0} if self.score in NEAR else {}
        return attention | ({"projection_size": 8} if self.model == "RNNsearch" and self.score != "additive" else {})

    def config(self) -> Config:
        """The configuration of the model, or a ConfigError where it is refused."""
        kind, sizes, key, _ = MODELS[self.model]
        return validate(kind, {**sizes, key: self.settings()})

    def build(self) -> Seq2Seq:
        """Make the model."""
        torch.manual_seed(3)
        return self.config().build(NUM_TOKENS, NUM_TOKENS, False)  # type: ignore[attr-defined]

    def refusal(self) -> str:
        """Why it is refused; empty where it is not."""
        try:
            self.config()
        except ConfigError as error:
            return str(error)
        return ""


def combinations() -> Iterator[Combination]:
    """All that there are."""
    for model, (_, _, _, windows) in MODELS.items():
        for score in SCORES:
            for variant in VARIANTS:
                for window in windows:
                    yield Combination(model, score, variant, window)


def complaint(model: Seq2Seq, score: str, attention: torch.nn.Module, num_steps: int = NUM_STEPS) -> str:
    """Train a model, and say what is wrong; empty where it learns.

    Args:
        model: fresh.
        score: name of the score of the attention that is watched.
        attention: the module that has it.
        num_steps: updates; where they are few the loss is only asked to be finite.
    """
    step = PairStep(model, 0.0).train()
    watched = _watch(attention)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    source, lengths = make_sources((5, 3, 6, 2))
    target_in = make_targets(len(source), length=5)
    target_out = torch.cat((target_in[:, 1:], torch.full((len(source), 1), 3)), dim=1)
    losses: list[float] = []
    slope = 0.0
    for number in range(num_steps):
        torch.manual_seed(number)
        sums = step(source, lengths, target_in, target_out)
        optimizer.zero_grad()
        sums.total.backward()
        gradients = [query.grad for query in watched if query.grad is not None]
        watched.clear()
        if not gradients and score not in FLAT:
            return "no gradient reaches the scores"
        slope += sum(float(gradient.abs().sum()) for gradient in gradients)
        losses.append(-float(sums.log_likelihood) / float(sums.num_units))
        if not math.isfinite(losses[-1]) or not math.isfinite(slope):
            return f"not finite at step {number}: loss {losses[-1]}, gradient of the scores {slope}"
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if slope == 0.0 and score not in FLAT:
        return "the gradient of the scores is zero"
    few = max(1, num_steps // 10)
    first, last = sum(losses[:few]) / few, sum(losses[-few:]) / few
    if num_steps >= NUM_STEPS and last > FALL * first:
        return f"the loss went from {first:.3f} to {last:.3f}"
    return ""


def find_attention(model: Seq2Seq, combination: Combination) -> torch.nn.Module:
    """The module whose score is that of the combination."""
    if combination.model in {"RNNsearch", "Luong"}:
        return model
    places = {
        "attention": "decoder_layers.0.cross_attention",
        "encoder_attention": "encoder_layers.0.self_attention",
        "decoder_attention": "decoder_layers.0.self_attention",
    }
    return model.get_submodule(places[MODELS[combination.model][2]])


def _watch(attention: torch.nn.Module) -> list[Tensor]:
    """Keep every query that is scored: its gradient comes through the scores alone."""
    score = attention.get_submodule("score")
    lower: Callable[..., LoweredScore] = score.lower  # type: ignore[assignment]
    watched: list[Tensor] = []

    def watching(query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredScore:
        own = query * 1.0
        if own.requires_grad:
            own.retain_grad()
            watched.append(own)
        return lower(own, prepared, inverse_temperature)

    object.__setattr__(score, "lower", watching)
    return watched

"""Attention core: every classic mechanism is score x mask x normalizer, read out against values.

>>> from heedful.attention import ScaledDot, attend, causal
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from heedful.errors import needed_for

if TYPE_CHECKING:
    from heedful.attention.biases import BIASES, Alibi, Biased, RelativeBuckets, RelativeKeys, ScoreBias
    from heedful.attention.dispatch import Choice, attend, explain
    from heedful.attention.interface import Attended, Normalized, Normalizer, PreparedKey, Score
    from heedful.attention.masks import MASKS, Mask, causal, graph, local_monotonic, local_predictive, padding, window
    from heedful.attention.monotonic import Chunkwise, HardMonotonic, Monotonic
    from heedful.attention.normalizers import NORMALIZERS
    from heedful.attention.reinforce import reinforce_loss, update_baseline
    from heedful.attention.scores import (
        SCORES,
        Additive,
        Boxcar,
        Concat,
        Constant,
        Cosine,
        Dot,
        Epanechnikov,
        Function,
        Gaussian,
        General,
        Laplacian,
        Location,
        ScaledDot,
        Triangular,
        Uniform,
    )
    from heedful.attention.simplex import Entmax, Sparsemax
    from heedful.attention.softmax import SOFTMAX, Softmax
    from heedful.attention.stochastic import GumbelSoftmax, Hard, Sampled, StraightThrough
    from heedful.attention.structured import LinearChain, NormalizedLinearChain, ProjectiveTree, Sigmoid
    from heedful.attention.structures import ChainDistribution, TreeDistribution
    from heedful.attention.trilinear import Trilinear
    from heedful.regression.estimator import NadarayaWatsonRegressor, toy_data

__all__ = [
    "BIASES",
    "MASKS",
    "NORMALIZERS",
    "SCORES",
    "SOFTMAX",
    "Additive",
    "Alibi",
    "Attended",
    "Biased",
    "Boxcar",
    "ChainDistribution",
    "Choice",
    "Chunkwise",
    "Concat",
    "Constant",
    "Cosine",
    "Dot",
    "Entmax",
    "Epanechnikov",
    "Function",
    "Gaussian",
    "General",
    "GumbelSoftmax",
    "Hard",
    "HardMonotonic",
    "Laplacian",
    "LinearChain",
    "Location",
    "Mask",
    "Monotonic",
    "NadarayaWatsonRegressor",
    "Normalized",
    "NormalizedLinearChain",
    "Normalizer",
    "PreparedKey",
    "ProjectiveTree",
    "RelativeBuckets",
    "RelativeKeys",
    "Sampled",
    "ScaledDot",
    "Score",
    "ScoreBias",
    "Sigmoid",
    "Softmax",
    "Sparsemax",
    "StraightThrough",
    "TreeDistribution",
    "Triangular",
    "Trilinear",
    "Uniform",
    "attend",
    "causal",
    "explain",
    "graph",
    "local_monotonic",
    "local_predictive",
    "padding",
    "reinforce_loss",
    "toy_data",
    "update_baseline",
    "window",
]

# Names load on first use, so that importing this costs nothing; strings, so that no import order is imposed.
_LAZY: Final[dict[str, tuple[str, ...]]] = {
    "heedful.attention.biases": ("BIASES", "Alibi", "Biased", "RelativeBuckets", "RelativeKeys", "ScoreBias"),
    "heedful.attention.dispatch": ("Choice", "attend", "explain"),
    "heedful.attention.interface": ("Normalized", "Normalizer", "PreparedKey", "Score"),
    "heedful.attention.kernels.interface": ("Attended",),
    "heedful.attention.masks": (
        "MASKS",
        "Mask",
        "causal",
        "graph",
        "local_monotonic",
        "local_predictive",
        "padding",
        "window",
    ),
    "heedful.attention.monotonic": ("Chunkwise", "HardMonotonic", "Monotonic"),
    "heedful.attention.normalizers": ("NORMALIZERS",),
    "heedful.regression.estimator": ("NadarayaWatsonRegressor", "toy_data"),
    "heedful.attention.reinforce": ("reinforce_loss", "update_baseline"),
    "heedful.attention.scores": (
        "SCORES",
        "Additive",
        "Boxcar",
        "Concat",
        "Constant",
        "Cosine",
        "Dot",
        "Epanechnikov",
        "Function",
        "Gaussian",
        "General",
        "Laplacian",
        "Location",
        "ScaledDot",
        "Triangular",
        "Uniform",
    ),
    "heedful.attention.simplex": ("Entmax", "Sparsemax"),
    "heedful.attention.softmax": ("SOFTMAX", "Softmax"),
    "heedful.attention.stochastic": ("GumbelSoftmax", "Hard", "Sampled", "StraightThrough"),
    "heedful.attention.structured": ("LinearChain", "NormalizedLinearChain", "ProjectiveTree", "Sigmoid"),
    "heedful.attention.trilinear": ("Trilinear",),
    "heedful.attention.structures": ("ChainDistribution", "TreeDistribution"),
}


def __getattr__(name: str) -> Any:
    module = next((module for module, names in _LAZY.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'heedful.attention' has no attribute {name!r}")
    with needed_for(f"heedful.attention.{name}"):
        return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted(__all__)

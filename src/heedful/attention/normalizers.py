"""Table of all normalizers (maps from scores to weights), by name."""

from typing import Final

from heedful.attention.interface import Normalizer
from heedful.attention.monotonic import HardMonotonic, Monotonic
from heedful.attention.simplex import Entmax, Sparsemax
from heedful.attention.softmax import Softmax
from heedful.attention.stochastic import GumbelSoftmax, Hard, Sampled, StraightThrough
from heedful.attention.structured import LinearChain, NormalizedLinearChain, ProjectiveTree, Sigmoid

NORMALIZERS: Final[dict[str, type[Normalizer]]] = {
    "softmax": Softmax,
    "sparsemax": Sparsemax,
    "entmax": Entmax,
    "hard": Hard,
    "sampled": Sampled,
    "straight_through": StraightThrough,
    "gumbel_softmax": GumbelSoftmax,
    "sigmoid": Sigmoid,
    "linear_chain": LinearChain,
    "normalized_linear_chain": NormalizedLinearChain,
    "monotonic": Monotonic,
    "hard_monotonic": HardMonotonic,
    "projective_tree": ProjectiveTree,
}
"""All normalizers; each constructor works without arguments."""

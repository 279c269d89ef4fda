"""Interfaces of scores and normalizers, and the results of attention; depends on no kernel."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Literal, Self, final

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.attention.lowered import ExpKey, GivenScores, LoweredScore
from heedful.errors import UsageError

Need = Literal["weights", "log_normalizer", "argmax", "entropy", "log_prob"]
"""Results that can be requested beside the context."""

Scope = Literal["row", "matrix"]
"""Scores that a normalizer needs at once: those of one query, or those of all queries."""

Scores = Float[Tensor, "*rows key"]
"""Scores or weights of whole rows; `*rows` stands for [*batch, query]."""

Allowed = Bool[Tensor, "*#rows key"]
"""Mask as a table: True = the query may attend to the key."""

RowIds = Int[Tensor, "*rows"]
"""Indices of the rows within a whole call, from which their noise is computed."""

OfRows = Float[Tensor, "*rows"]
"""One number per row."""

Region = Literal["simplex", "sub-simplex", "box"]
"""Set that contains the weights of a query: sums of 1, sums of at most 1, or each in [0, 1]."""


@final
@dataclass(frozen=True)
class PreparedKey:
    """Keys after the query-independent part of a score, computed once per source.

    Example:
        >>> import torch
        >>> from heedful.attention import Additive, attend
        >>> score, key = Additive(8, 6, hidden_size=16), torch.ones(2, 5, 6)
        >>> prepared = score.prepare(key)  # once for a source
        >>> list(attend(torch.ones(2, 1, 8), prepared, key, score=score).context.shape)
        [2, 1, 6]
    """

    key: Float[Tensor, "*batch key size"]
    """[*batch, key, size]"""
    exp_key: ExpKey | None = None
    """Exponentials of the keys, for kernels of additive scores."""

    def select(self, rows: Int[Tensor, " kept"]) -> "PreparedKey":
        """Select sources.

        Args:
            rows: [kept] indices into axis 0.
        """
        exp_key = None if self.exp_key is None else self.exp_key.select(rows)
        return PreparedKey(self.key.index_select(0, rows), exp_key)


class Score(nn.Module, ABC):
    """Score function a(query, key), built from the sizes of both.

    Every score has the same constructor, so that they are interchangeable. A subclass has a method
    ``forward(query, key)``, or `prepare` and `lower` for a form that fast kernels know.

    Example:
        >>> from heedful.attention import SCORES
        >>> type(SCORES["additive"](8, 6, 16)).__name__  # all take query_size, key_size and hidden_size
        'Additive'
    """

    max_keys: int | None = None
    """Largest number of keys that can be scored; keys beyond it are not attended to."""
    is_positional: ClassVar[bool] = False
    """Whether the score depends on the position of a key, not only on its content."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__()
        self.query_size = query_size
        self.key_size = key_size
        self.hidden_size = hidden_size

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        """Compute the part of the score that depends on the keys alone.

        Args:
            key: [*batch, key, key_size].

        Returns:
            The prepared keys, to be passed to `lower`; by default the keys themselves.
        """
        return PreparedKey(key)

    def lower(
        self,
        query: Float[Tensor, "*batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredScore:
        """Lower queries and prepared keys to a form that kernels know.

        Args:
            query: [*batch, query, query_size].
            prepared: from `prepare`.
            inverse_temperature: factor of the scores, above 0; a number, or a tensor [].

        Returns:
            Lowered score with the values a(query, key) * inverse_temperature; by default those of
            ``forward(query, key)``, which kernels call for some of the queries at a time.

        Raises:
            UsageError: the score has neither `lower` nor `forward`.
        """
        if type(self).forward is nn.Module.forward:
            raise UsageError(
                f"score {type(self).__name__}: write forward(query, key), which gives scores [*batch, query, key], or "
                "prepare and lower, which give kernels a form that they know"
            )
        return GivenScores(query, prepared.key, self, inverse_temperature=inverse_temperature)


@dataclass(frozen=True)
class Attended:
    """Result of attention; fields beside `context` are present only if requested by `need`.

    Example:
        >>> import torch
        >>> from heedful.attention import Dot, attend
        >>> vectors = torch.ones(2, 3, 8)
        >>> attended = attend(vectors, vectors, vectors, score=Dot(8, 8), need=["weights", "entropy"])
        >>> list(attended.weights.shape), list(attended.entropy.shape)
        ([2, 3, 3], [2, 3])
    """

    context: Float[Tensor, "*#batch query value_depth"]
    """[*batch, query, value_depth] weighted sums of the values; zero where nothing may be attended."""
    kernel: str
    """Name of the kernel that ran."""
    weights: Float[Tensor, "*#batch query key"] | None = None
    """[*batch, query, key] before dropout."""
    log_normalizer: Float[Tensor, "*#batch query"] | None = None
    """[*batch, query] log of the sum of exponentiated scores; for structured attention, of the sum over structures."""
    argmax: Int[Tensor, "*#batch query"] | None = None
    """[*batch, query] key of the largest weight; 0 where no key may be attended to."""
    entropy: Float[Tensor, "*#batch query"] | None = None
    """[*batch, query] entropy of the weights, or of the distribution that they were drawn from, in nats."""
    log_prob: Float[Tensor, "*#batch query"] | None = None
    """[*batch, query] log probability of the drawn key, in nats."""


@dataclass(frozen=True)
class Normalized:
    """Weights of whole rows and their by-products; None if it follows from the weights, or is unavailable.

    Example:
        >>> import torch
        >>> from heedful.attention import Softmax
        >>> Softmax().normalize(torch.zeros(1, 4), None).weights.tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """

    weights: Scores
    """[*batch, query, key]; zero where not allowed, a zero row where nothing is."""
    log_normalizer: OfRows | None = None
    """[*batch, query] log of the sum of exponentials; -inf for an empty row."""
    entropy: OfRows | None = None
    """[*batch, query] entropy of the distribution that weights were drawn from, in nats; None: use the weights."""
    log_prob: OfRows | None = None
    """[*batch, query] log probability of the drawn key, in nats; 0 for an empty row."""


class Normalizer(ABC):
    """Map from scores to weights, row by row.

    Example:
        >>> from heedful.attention import Hard, Softmax
        >>> sorted(Hard.provides - Softmax.provides), Softmax.weights_lie_in
        ([], 'simplex')
    """

    provides: ClassVar[frozenset[Need]]
    weights_lie_in: ClassVar[Region]
    scope: ClassVar[Scope] = "row"
    is_random: ClassVar[bool] = False
    """Whether weights depend on noise, and so on row indices."""
    is_positional: ClassVar[bool] = False
    """Whether weights depend on the order of the keys, as in structured attention."""
    is_shift_invariant: ClassVar[bool] = True
    """Whether adding a constant to all scores of a row changes nothing."""
    has_gradient: ClassVar[bool] = True
    """Whether gradients flow from the weights to the scores."""
    has_memory: ClassVar[bool] = False
    """Whether weights of a query depend on those of the query before; `after` passes them from one call to the next."""
    learned: ClassVar[Mapping[str, tuple[int, ...]]] = MappingProxyType({})
    """Fields that a model learns, with their shapes; each may have leading axes, aligned with those of the scores."""

    @property
    @abstractmethod
    def inverse_temperature(self) -> Tensor | float:
        """Factor of the scores, applied before anything else; kernels fold it into the lowered score."""

    def seeded(self) -> "Normalizer":
        """Fix the random numbers, so that recomputing a row repeats it.

        Returns:
            Itself, or where noise has no seed yet a copy whose seed came from torch's generator.
        """
        return self

    def without_noise(self) -> "Normalizer":
        """Return the deterministic normalizer for inference.

        Returns:
            Itself, or its deterministic replacement.
        """
        return self

    def after(self, previous: Float[Tensor, "*#batch key"]) -> Self:
        """Return the normalizer of the queries that follow, which only one with memory has.

        Args:
            previous: [*batch, key] weights of the query before the first.

        Raises:
            UsageError: the normalizer has no memory.
        """
        raise UsageError(f"{type(self).__name__}: its weights do not depend on those of another query")

    def why_not(self, num_queries: int, num_keys: int) -> str | None:
        """Say why weights are undefined for these numbers of queries and keys.

        Args:
            num_queries: number of queries of a call.
            num_keys: number of keys of a call.

        Returns:
            The reason; None if weights are defined, which is the default for any numbers.
        """
        return None

    def why_not_exported(self) -> str | None:
        """Say why the normalizer cannot be exported to a graph for another runtime.

        Returns:
            The reason; None if it can be exported.
        """
        return None

    @abstractmethod
    def normalize(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Normalized:
        """Compute weights and their by-products from scores.

        Args:
            scores: [*batch, query, key], temperature already applied; finite.
            allowed: [#*batch, #query, key] bool, True = may attend; None = all.
            row_ids: [*batch, query] numbers of the rows in the whole call, for noise; None numbers them from 0.
        """

    def weigh(self, scores: Scores, allowed: Allowed | None, row_ids: RowIds | None = None) -> Scores:
        """Compute the weights alone from scores.

        Args:
            scores: as for `normalize`.
            allowed: as for `normalize`.
            row_ids: as for `normalize`.

        Returns:
            [*batch, query, key] the weights that `normalize` gives.
        """
        return self.normalize(scores, allowed, row_ids).weights

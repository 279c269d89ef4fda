"""Score functions, which compare a query with a key; each lowers to a form that kernels compute.

Paper's names: Bahdanau et al. 2015 (arXiv:1409.0473) e_ij = a(s_{i-1}, h_j); Luong et al. 2015 (arXiv:1508.04025)
score(h_t, h_s); Vaswani et al. 2017 (arXiv:1706.03762) Q K^T / sqrt(d_k).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Final, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.call_checks import explain_types
from heedful.attention.interface import PreparedKey, Score
from heedful.attention.kernels.additive.cpu_ops import is_quick, prepare_exp_key
from heedful.attention.kernels.additive.cpu_ops import supports as supports_additive
from heedful.attention.lowered import LoweredAdditive, LoweredDistance, LoweredDot, scaled
from heedful.attention.trilinear import Trilinear
from heedful.cpu.concrete import concrete, is_exporting
from heedful.errors import ShapeError, UsageError


class _Dot(Score):
    """Base of dot and scaled dot: both sizes are equal, and there are no parameters."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        if query_size != key_size:
            raise ShapeError(
                f"dot score: query size {query_size} and key size {key_size} differ; use General, "
                "which maps between them"
            )
        super().__init__(query_size, key_size, hidden_size)

    @property
    @abstractmethod
    def scale(self) -> float:
        """Factor of the dot products."""

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredDot:
        return LoweredDot.with_factor(query, prepared.key, self.scale * inverse_temperature)


@final
class Dot(_Dot):
    """a(q, k) = q . k. Luong et al. 2015, arXiv:1508.04025, section 3.1, dot.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Dot(8, 8)).context.shape)
        [2, 3, 8]
    """

    @property
    def scale(self) -> float:
        return 1.0


@final
class ScaledDot(_Dot):
    """a(q, k) = q . k / sqrt(depth). Vaswani et al. 2017, arXiv:1706.03762, eq. 1.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=ScaledDot(8, 8)).context.shape)
        [2, 3, 8]
    """

    @property
    def scale(self) -> float:
        return 1.0 / math.sqrt(self.query_size)


@final
class General(Score):
    """a(q, k) = q W k, W [query_size, key_size]; bilinear. Luong et al. 2015, arXiv:1508.04025, section 3.1, general.

    Cost: query_size multiply-adds per pair; preparing, query_size * key_size per key.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 6)
        >>> list(attend(query, key, key, score=General(8, 6)).context.shape)
        [2, 3, 6]
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(query_size, key_size))
        nn.init.xavier_uniform_(self.weight)

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        # Keys are projected, W k, so that decoding steps need not project them.
        return PreparedKey(key @ self.weight.mT)

    def lower(
        self,
        query: Float[Tensor, "*batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredDot:
        return LoweredDot.with_factor(query, prepared.key, inverse_temperature)


@final
class Cosine(_Dot):
    """a(q, k) = q . k / (|q| |k|), in [-1, 1]; 0 for a vector of zeros. Graves et al. 2014, arXiv:1410.5401, eq. 6.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Cosine(8, 8)).context.shape)
        [2, 3, 8]
    """

    @property
    def scale(self) -> float:
        return 1.0

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        return PreparedKey(_unit(key))

    def lower(
        self,
        query: Float[Tensor, "*batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredDot:
        return super().lower(_unit(query), prepared, inverse_temperature)


def _unit(vectors: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / length.masked_fill(
        length == 0, 1.0
    )  # zero vectors stay zero, with a bounded gradient, in every dtype


@final
class Uniform(Score):
    """a(q, k) = 0: average pooling over the keys that may be attended.

    Cost: 1 multiply-add per pair.

    Example:
        >>> from heedful.attention import attend
        >>> value = torch.tensor([[1.0], [2.0], [6.0]])
        >>> attend(torch.ones(1, 1), value, value, score=Uniform(1, 1)).context.tolist()
        [[3.0]]
    """

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        return PreparedKey(torch.zeros_like(key[..., :1]))

    def lower(
        self,
        query: Float[Tensor, "*batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredDot:
        return LoweredDot(torch.zeros_like(query[..., :1]), prepared.key)


@final
class Location(Score):
    """a(q, k_j) = (W q)_j, W [position, query_size]: it depends on the position of a key, not on its content.

    Luong et al. 2015, arXiv:1508.04025, eq. 8 and note 7. A source shorter than W uses its first rows; words beyond the
    last row are not attended. `hidden_size` is the number of positions, 50 by default.

    Cost: query_size multiply-adds per pair.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Location(8, 8, hidden_size=10)).context.shape)
        [2, 3, 8]
    """

    is_positional = True

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size or 50)
        self.max_keys = self.hidden_size
        self.weight = nn.Parameter(torch.empty(self.hidden_size, query_size))
        nn.init.xavier_uniform_(self.weight)

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        return PreparedKey(key)

    def lower(
        self,
        query: Float[Tensor, "*batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredDot:
        explain_types(self, query)
        *leading, num_keys, _ = prepared.key.shape
        if is_exporting():
            # The number of keys is symbolic here, and a comparison would specialize the graph.
            rows = functional.pad(self.weight, (0, 0, 0, num_keys))[:num_keys]
        else:
            rows = functional.pad(self.weight[:num_keys], (0, 0, 0, max(0, num_keys - self.hidden_size)))
        return LoweredDot.with_factor(query, rows.expand(*leading, *rows.shape), inverse_temperature)


class _Additive(Score):
    """Base of additive and concat: v . tanh(one map of the query + another of the key)."""

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size or query_size)
        self.vector = nn.Parameter(torch.empty(self.hidden_size))
        bound = math.sqrt(3.0 / self.hidden_size)
        nn.init.uniform_(self.vector, -bound, bound)

    @abstractmethod
    def map_query(self, query: Tensor) -> Tensor:
        """[*, query_size] -> [*, hidden]."""

    @abstractmethod
    def map_key(self, key: Tensor) -> Tensor:
        """[*, key_size] -> [*, hidden]."""

    def prepare(self, key: Tensor) -> PreparedKey:
        mapped = self.map_key(key)
        if (
            not concrete(mapped)
            # With one query, so few keys are scored by plain operations.
            or is_quick(mapped.numel(), mapped.dtype)
            or supports_additive(mapped.dtype, mapped.device.type) is not None
        ):
            return PreparedKey(mapped)
        # The kernel computes in float32 for every dtype; widening here saves widening at every decoding step. Only
        # mixed precision allows keys wider than values.
        is_mixed = torch.is_autocast_enabled(mapped.device.type)
        mapped = mapped.float() if is_mixed and mapped.dtype in {torch.bfloat16, torch.float16} else mapped
        return PreparedKey(mapped, prepare_exp_key(mapped.detach()))

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredAdditive:
        vector = scaled(self.vector, inverse_temperature)
        return LoweredAdditive(self.map_query(query), prepared.key, vector, exp_key=prepared.exp_key)


@final
class Additive(_Additive):
    """a(q, k) = v . tanh(W q + U k), W [hidden, query], U [hidden, key], v [hidden].

    Bahdanau et al. 2015, arXiv:1409.0473, A.1.2, where query = s_{i-1} and key = h_j.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 6)
        >>> list(attend(query, key, key, score=Additive(8, 6, hidden_size=16)).context.shape)
        [2, 3, 6]
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0, *, has_query_bias: bool = False) -> None:
        """Create the two maps.

        Args:
            query_size: features of a query.
            key_size: features of a key.
            hidden_size: hidden units; 0 = as many as features of a query.
            has_query_bias: whether a learned vector is added to W q, as other toolkits have it.
        """
        super().__init__(query_size, key_size, hidden_size)
        self.query_projection = nn.Linear(query_size, self.hidden_size, bias=has_query_bias)
        self.key_projection = nn.Linear(key_size, self.hidden_size, bias=False)

    def map_query(self, query: Tensor) -> Tensor:
        return self.query_projection(query)

    def map_key(self, key: Tensor) -> Tensor:
        return self.key_projection(key)


@final
class Concat(_Additive):
    """a(q, k) = v . tanh(W [q; k]), W [hidden, query + key], v [hidden].

    Luong et al. 2015, arXiv:1508.04025, section 3.1, concat. The same function as additive, with W and U joined in one
    matrix.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 6)
        >>> list(attend(query, key, key, score=Concat(8, 6, hidden_size=16)).context.shape)
        [2, 3, 6]
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0) -> None:
        super().__init__(query_size, key_size, hidden_size)
        self.weight = nn.Parameter(torch.empty(self.hidden_size, query_size + key_size))
        nn.init.xavier_uniform_(self.weight)

    def map_query(self, query: Tensor) -> Tensor:
        return functional.linear(query, self.weight[:, : self.query_size])

    def map_key(self, key: Tensor) -> Tensor:
        return functional.linear(key, self.weight[:, self.query_size :])


class _Kernel(Score, ABC):
    """a(q, k) = log K(|q - k| / bandwidth): the weights of Nadaraya-Watson kernel regression."""

    profile: ClassVar[str]
    """Name in `profiles.PROFILES`."""

    def __init__(
        self,
        query_size: int,
        key_size: int,
        hidden_size: int = 0,
        *,
        bandwidth: float = 1.0,
        has_learned_bandwidth: bool = False,
    ) -> None:
        if query_size != key_size:
            raise ShapeError(
                f"{self.profile} score: query size {query_size} and key size {key_size} differ; "
                "distances need points of one space"
            )
        if not 0.0 < bandwidth < math.inf:
            raise UsageError(f"{self.profile} score: bandwidth must be above 0 and finite, got {bandwidth}")
        super().__init__(query_size, key_size, hidden_size)
        # The bandwidth is learned as its logarithm, so that it stays above 0.
        logarithm = torch.tensor(math.log(bandwidth), device="cpu")
        self.log_bandwidth = nn.Parameter(logarithm.to(torch.get_default_device()), requires_grad=has_learned_bandwidth)
        # Before any update the bandwidth is exactly the number passed; the exponential of its rounded logarithm is not.
        self._initial = bandwidth, logarithm.item()

    def prepare(self, key: Tensor) -> PreparedKey:
        return PreparedKey(key)

    def lower(self, query: Tensor, prepared: PreparedKey, inverse_temperature: Tensor | float = 1.0) -> LoweredDistance:
        # By name: the compiler of PyTorch 2.11 gives a field that has a default twice otherwise.
        return LoweredDistance(
            query, prepared.key, self.bandwidth, self.profile, inverse_temperature=inverse_temperature
        )

    @property
    def bandwidth(self) -> Tensor:
        """[] bandwidth in the unit of the points."""
        initial, logarithm = self._initial
        return (self.log_bandwidth - logarithm).exp().mul(initial)


@final
class Gaussian(_Kernel):
    """a(q, k) = -|q - k|^2 / (2 bandwidth^2). Nadaraya 1964, doi:10.1137/1109020; Watson 1964.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Gaussian(8, 8, bandwidth=2.0)).context.shape)
        [2, 3, 8]
    """

    profile = "gaussian"


@final
class Laplacian(_Kernel):
    """a(q, k) = -|q - k| / bandwidth.

    Rasmussen and Williams 2006, doi:10.7551/mitpress/3206.001.0001, section 4.2.1.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Laplacian(8, 8, bandwidth=2.0)).context.shape)
        [2, 3, 8]
    """

    profile = "laplacian"


@final
class Boxcar(_Kernel):
    """a(q, k) = 0 where |q - k| < bandwidth, and none beyond: the mean over near keys.

    Rosenblatt 1956, doi:10.1214/aoms/1177728190.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Boxcar(8, 8, bandwidth=2.0)).context.shape)
        [2, 3, 8]
    """

    profile = "boxcar"


@final
class Triangular(_Kernel):
    """a(q, k) = log(1 - |q - k| / bandwidth), and none beyond the bandwidth.

    Silverman 1986, doi:10.1201/9781315140919, table 3.1.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Triangular(8, 8, bandwidth=2.0)).context.shape)
        [2, 3, 8]
    """

    profile = "triangular"


@final
class Epanechnikov(_Kernel):
    """a(q, k) = log(1 - |q - k|^2 / bandwidth^2), and none beyond it. Epanechnikov 1969, doi:10.1137/1114019.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Epanechnikov(8, 8, bandwidth=2.0)).context.shape)
        [2, 3, 8]
    """

    profile = "epanechnikov"


@final
class Constant(_Kernel):
    """a(q, k) = 0 at any distance: average pooling, because this kernel ignores the query.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> list(attend(query, key, key, score=Constant(8, 8)).context.shape)
        [2, 3, 8]
    """

    profile = "constant"


@final
class Function(Score):
    """a(q, k) = any user function of whole tensors: scores = function(query, key).

    `attend(score=lambda query, key: ...)` wraps a plain function in this class.

    Example:
        >>> from heedful.attention import attend
        >>> query, key = torch.ones(2, 3, 8), torch.ones(2, 5, 8)
        >>> squared = Function(lambda query, key: (query @ key.mT) ** 2)
        >>> list(attend(query, key, key, score=squared).context.shape)
        [2, 3, 8]
    """

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Wrap a function.

        Args:
            function: from [*batch, query, query_size] and [*batch, key, key_size] to [*batch, query, key]; it must
                treat queries independently, because it is called for tiles of them, and again for gradients.
        """
        super().__init__(0, 0)
        self.function = function

    def forward(
        self, query: Float[Tensor, "*batch query query_size"], key: Float[Tensor, "*batch key key_size"]
    ) -> Float[Tensor, "*batch query key"]:
        """Call the function."""
        return self.function(query, key)


SCORES: Final[dict[str, type[Score]]] = {
    "dot": Dot,
    "scaled_dot": ScaledDot,
    "general": General,
    "trilinear": Trilinear,
    "cosine": Cosine,
    "additive": Additive,
    "concat": Concat,
    "location": Location,
    "uniform": Uniform,
    "gaussian": Gaussian,
    "laplacian": Laplacian,
    "boxcar": Boxcar,
    "triangular": Triangular,
    "epanechnikov": Epanechnikov,
    "constant": Constant,
}
"""All scores by name; constructors take (query_size, key_size, hidden_size)."""

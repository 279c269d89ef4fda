"""Learned query vectors: pool a sequence of any length into a vector, or a matrix of few rows."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Need, Normalizer, PreparedKey, Score
from heedful.attention.lowered import LoweredDot
from heedful.attention.masks import Mask
from heedful.attention.softmax import SOFTMAX
from heedful.errors import UsageError


@final
class TanhDot(Score):
    """a(q, k) = q . tanh(W k + b), W [query_size, key_size]; b optional.

    Lin et al. 2017, arXiv:1703.03130, eq. 5, where b = 0; with b Yang et al. 2016, eq. 5-6, where q is their u_w. The
    hidden layer depends on keys alone: key * query_size numbers for any number of queries.

    Example:
        >>> from heedful.attention import attend
        >>> list(attend(torch.ones(1, 5), torch.ones(6, 8), torch.ones(6, 8), score=TanhDot(5, 8)).context.shape)
        [1, 8]
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int = 0, *, has_bias: bool = False) -> None:
        """Make the map of the keys.

        Args:
            query_size: features of a query and of the hidden layer, the paper's d_a; 350 there.
            key_size: features of a key.
            hidden_size: unused; part of every score's constructor.
            has_bias: whether the map has a bias, initialised with zeros.
        """
        super().__init__(query_size, key_size, hidden_size)
        self.key_projection = nn.Linear(key_size, query_size, bias=has_bias)
        nn.init.xavier_uniform_(self.key_projection.weight)
        if has_bias:
            nn.init.zeros_(self.key_projection.bias)

    def prepare(self, key: Float[Tensor, "*batch key key_size"]) -> PreparedKey:
        return PreparedKey(torch.tanh(self.key_projection(key)))

    def lower(
        self,
        query: Float[Tensor, "*#batch query query_size"],
        prepared: PreparedKey,
        inverse_temperature: Tensor | float = 1.0,
    ) -> LoweredDot:
        return LoweredDot(query * inverse_temperature, prepared.key)


@final
class MultiQueryVectorAttention(nn.Module):
    """concat_i(attention(q_i, keys, values)), each q_i a learned vector, with one score for all.

    With `TanhDot` the structured self-attentive embedding of Lin et al. 2017, arXiv:1703.03130: A = softmax(W2
    tanh(W1 H^T)), M = A H, where the rows of W2 are the query vectors; with one query vector the attention over words
    or sentences of Yang et al. 2016. Unlike heads, query vectors share unprojected keys and values; only the score may
    project. Keys [*batch, key, key_size] and values [*batch, key, value_size] become one vector [*batch, num_queries *
    value_size].
    """

    def __init__(self, num_queries: int, score: Score, dropout: float = 0.0, normalizer: Normalizer = SOFTMAX) -> None:
        """Draw the query vectors.

        Args:
            num_queries: number of query vectors, at least 1; the paper's r, 30 there.
            score: any score; the query vectors have its query size.
            dropout: probability in [0, 1) of leaving out a weight.
            normalizer: map from scores to weights; softmax by default.

        Raises:
            UsageError: `num_queries` is below 1.
        """
        super().__init__()
        if num_queries < 1:
            raise UsageError(f"multi-query-vector attention: num_queries must be at least 1, got {num_queries}")
        self.queries = nn.Parameter(torch.empty(num_queries, score.query_size))
        nn.init.xavier_uniform_(self.queries)
        self.score = score
        self.dropout = dropout
        self.normalizer = normalizer

    def forward(
        self,
        key: Tensor | PreparedKey,
        value: Float[Tensor, "*#batch key value_size"],
        mask: Mask | None = None,
        need: tuple[Need, ...] = (),
    ) -> tuple[Float[Tensor, "*batch _"], Attended]:
        """Attend with every query vector.

        Args:
            key: [*batch, key, key_size], or the result of `score.prepare` on it.
            value: [*batch, key, value_size]; in the papers the keys themselves.
            mask: who may attend whom; True = may attend.
            need: results requested beside the context, such as the weights, for `overlap_penalty`.

        Returns:
            [*batch, num_queries * value_size] the concatenated contexts, and the result of `attend`: its context is the
            matrix M [*batch, num_queries, value_size], its weights A [*batch, num_queries, key].

        Cost: that of `attend` for num_queries queries; with `TanhDot` key * query_size * (key_size + num_queries)
        multiply-adds, without an array [query, key, hidden].

        Example:
            >>> layer = MultiQueryVectorAttention(3, TanhDot(10, 4))
            >>> states = torch.ones(2, 7, 4)
            >>> vector, attended = layer(states, states, need=("weights",))
            >>> list(vector.shape), list(attended.context.shape), list(attended.weights.shape)
            ([2, 12], [2, 3, 4], [2, 3, 7])
        """
        attended = attend(
            self.queries,
            key,
            value,
            score=self.score,
            mask=mask,
            normalizer=self.normalizer,
            dropout=self.dropout if self.training else 0.0,
            need=need,
        )
        return attended.context.flatten(-2), attended


@final
class StepQueryVectorAttention(nn.Module):
    """s_t = attention(q_t, keys, values), where each step t has a learned vector q_t of its own.

    alpha_ti = softmax_i(score(q_t, key_i)), s_t = sum_i alpha_ti value_i. With `TanhDot` the self-attention over the
    states of a recurrent encoder in Tixier 2018, arXiv:1808.09772, chapter 7, which has one learned vector for all
    steps; notes on that chapter have one for each. A query depends on the number of its step alone, not on what stands
    there. All query vectors are zero at the start, which gives equal weights; so they remain at steps that no sequence
    of the training reaches. Steps [*batch, step], keys [*batch, key, key_size] and values [*batch, key, value_size]
    become [*batch, step, value_size].
    """

    def __init__(self, num_steps: int, score: Score, normalizer: Normalizer = SOFTMAX) -> None:
        """Make the query vectors.

        Args:
            num_steps: number of steps with a query vector of their own, at least 1; later steps share the last one.
            score: any score; the query vectors have its query size.
            normalizer: map from scores to weights; softmax by default.

        Raises:
            UsageError: `num_steps` is below 1.
        """
        super().__init__()
        if num_steps < 1:
            raise UsageError(f"step-query-vector attention: num_steps must be at least 1, got {num_steps}")
        self.queries = nn.Parameter(torch.zeros(num_steps, score.query_size))
        self.score = score
        self.normalizer = normalizer

    def forward(
        self,
        steps: Int[Tensor, "*#batch step"],
        key: Tensor | PreparedKey,
        value: Float[Tensor, "*#batch key value_size"],
        mask: Mask | None = None,
        need: tuple[Need, ...] = (),
    ) -> Attended:
        """Attend at the steps asked for.

        Args:
            steps: [*batch, step] numbers of steps, from 0; all of a sequence, or its last one alone.
            key: [*batch, key, key_size], or the result of `score.prepare` on it.
            value: [*batch, key, value_size]; in the source the keys themselves.
            mask: who may attend whom; True = may attend.
            need: results requested beside the context, such as the weights.

        Returns:
            The result of `attend`: its context is s_t [*batch, step, value_size], its weights [*batch, step, key].

        Cost: that of `attend` for as many queries as steps are asked for.

        Example:
            >>> layer = StepQueryVectorAttention(50, TanhDot(10, 4))
            >>> states = torch.ones(2, 7, 4)
            >>> list(layer(torch.arange(7), states, states).context.shape)
            [2, 7, 4]
            >>> list(layer(torch.tensor([[6], [3]]), states, states).context.shape)
            [2, 1, 4]
        """
        # Unlike indexing, this has the same gradient for any number of threads.
        queries = functional.embedding(steps.clamp(0, len(self.queries) - 1), self.queries)
        return attend(queries, key, value, score=self.score, mask=mask, normalizer=self.normalizer, need=need)


def overlap_penalty(weights: Float[Tensor, "*batch query key"]) -> Float[Tensor, "*batch"]:
    """Measure how far query vectors attend to the same keys: |A A^T - I|^2, the squared Frobenius norm.

    Off the diagonal, A A^T measures the overlap of two rows; on the diagonal, the concentration of a row, 1 for a
    single key. Lin et al. 2017, eq. 8, with coefficient 1 in the loss, or 0.3 for entailment.

    Args:
        weights: [*batch, query, key] rows that sum to 1, or are zero.

    Returns:
        [*batch], in [0, query^2]; if no key may be attended, the number of queries, without gradient.

    Cost: query^2 * key multiply-adds.

    Example:
        >>> overlap_penalty(torch.tensor([[1.0, 0.0], [0.0, 1.0]])).item()
        0.0
        >>> overlap_penalty(torch.tensor([[1.0, 0.0], [1.0, 0.0]])).item()
        2.0
    """
    one = torch.eye(weights.shape[-2], dtype=weights.dtype, device=weights.device)
    return (weights @ weights.mT - one).square().sum(dim=(-2, -1))

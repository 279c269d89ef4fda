"""Words beside their soft heads: self-attention over the words of a source, for an encoder without any other context.

Kim, Denton, Hoang and Rush 2017, arXiv:1702.00887, section 4.1. A bidirectional unit reads the words x_j and gives
h_j; weights p_ij of word i as the head of word j follow from a score theta_ij of h_j and h_i; the soft head of word j
is c_j = sum_i p_ij x_i, and the encoder's output is [x_j; c_j]. The softmax over i is the paper's "simple" attention,
and marginals of projective trees are its "structured" attention. Its score is tanh(s . tanh(W_1 h_i + W_2 h_j)): the
outer tanh bounds the odds of two heads by e^2, so a softmax cannot single out one of many words, but a tree can.
"""

from typing import ClassVar, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import pad

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Need, Normalizer, Score
from heedful.attention.kernels.plain import PlainScores
from heedful.attention.masks import padding, window
from heedful.attention.scores import Function
from heedful.attention.structured import ProjectiveTree
from heedful.attention.structures import TreeDistribution
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.recurrent import BidirectionalEncoder, Cell


@final
class SelfAttentiveWords(nn.Module):
    """Words beside their soft heads, [x_j; sum_i p_ij x_i]; Kim et al. 2017, arXiv:1702.00887, section 4.1.

    Example:
        >>> from heedful.attention import Additive, Softmax
        >>> layer = SelfAttentiveWords(4, 6, Additive(6, 6, 6), Softmax())
        >>> vectors, _ = layer(torch.ones(2, 5, 4), torch.tensor([5, 3]))
        >>> list(vectors.shape)  # each word beside its head
        [2, 5, 8]
    """

    has_root: ClassVar[bool] = True
    """Whether the root stands before the words among the keys, as pages have to know."""

    def __init__(
        self,
        size: int,
        hidden_size: int,
        score: Score,
        normalizer: Normalizer,
        cell: Cell = "lstm",
        is_bounded: bool = False,
    ) -> None:
        """Make the unit that reads the words, and the root.

        Args:
            size: features of a word x_j.
            hidden_size: features of h_j, even: half of them in each direction.
            score: score of a word h_j, the query, and a head h_i.
            normalizer: map from scores to the weights p_ij.
            cell: kind of the unit.
            is_bounded: whether weights follow from tanh of the score.
        """
        super().__init__()
        self.output_size = 2 * size
        self.reader = BidirectionalEncoder(size, hidden_size // 2, cell=cell)
        self.score = score
        # A module of its own, so that capture finds the attention in the model whichever score it has.
        self.bounded_score = Function(self._bounded_scores) if is_bounded else None
        self.normalizer = NormalizerLayer(normalizer)
        self.root = nn.Parameter(torch.zeros(hidden_size))

    def forward(
        self,
        words: Float[Tensor, "batch position size"],
        lengths: Int[Tensor, " batch"],
        need: tuple[Need, ...] = (),
    ) -> tuple[Float[Tensor, "batch position _"], Attended]:
        """Put every word beside its soft head.

        Args:
            words: [batch, position, size] words x_j.
            lengths: [batch] real positions.
            need: results requested beside the context.

        Returns:
            [batch, position, 2 * size], arbitrary where padded; and the attention, whose keys are the root followed by
            the words. The root is the head of words without another one, and has the vector 0.
        """
        states = self.reader(words, lengths)
        root = self.root.expand(states.shape[0], 1, -1)  # `len` would fix the batch size of a recorded graph
        attended = attend(
            states,
            torch.cat((root, states), dim=1),
            torch.cat((torch.zeros_like(words[:, :1]), words), dim=1),
            score=self.score if self.bounded_score is None else self.bounded_score,
            # A query's own position is one further among the keys, before which the root stands.
            mask=padding(lengths + 1) & ~window(0, 0),
            normalizer=self.normalizer(),
            need=need,
        )
        return torch.cat((words, attended.context), dim=-1), attended

    def tree(self, weights: Float[Tensor, "*batch word head"]) -> Int[Tensor, "*batch word"] | None:
        """Find the projective tree whose arcs have the largest sum of weights, where weights are marginals of trees.

        No other tree is expected to share more arcs with one that is drawn from their distribution.

        Args:
            weights: [*batch, word, head] weights of the attention, without padding.

        Returns:
            [*batch, word] index of each word's head among the keys, 0 = the root; None with other normalizers, whose
            weights are of no trees.
        """
        normalizer = self.normalizer.normalizer
        if not isinstance(normalizer, ProjectiveTree):
            return None
        arcs = pad(weights.mT, (1, 0))
        return TreeDistribution(arcs, is_single_root=normalizer.is_single_root).best()[..., 1:]

    def _bounded_scores(self, query: Tensor, key: Tensor) -> Tensor:
        """Bounded scores, tanh of those of `score`: [*batch, query, key]; -1 where a kernel does not reach."""
        scores, is_within = PlainScores().scores(self.score.lower(query, self.score.prepare(key)))
        return torch.tanh(scores if is_within is None else scores.masked_fill(~is_within, -torch.inf))

"""Words beside their soft heads: self-attention over the words of a source, for an encoder without any other context.

Kim, Denton, Hoang and Rush 2017, arXiv:1702.00887, section 4.1. A bidirectional unit reads the words x_j and gives
h_j; weights p_ij of word i as the head of word j follow from a score of h_j and h_i; the soft head of word j is
c_j = sum_i p_ij x_i, and the encoder's output is [x_j; c_j]. With the additive score theta_ij = s . tanh(W_1 h_i +
W_2 h_j), the softmax over i is the paper's "simple" attention, and marginals of projective trees are its "structured"
attention. The paper puts another tanh around theta_ij, here left out: it bounds the odds of two heads by e^2.
"""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Attended, Need, Normalizer, Score
from heedful.attention.masks import padding, window
from heedful.layers.normalizing import NormalizerLayer
from heedful.layers.recurrent import BidirectionalEncoder, Cell


@final
class SelfAttentiveWords(nn.Module):
    """Words beside their soft heads, [x_j; sum_i p_ij x_i]."""

    def __init__(self, size: int, hidden_size: int, score: Score, normalizer: Normalizer, cell: Cell = "lstm") -> None:
        """Make the unit that reads the words, and the root.

        Args:
            size: features of a word.
            hidden_size: features of h_j, even: half of them in each direction.
            score: score of a word h_j, the query, and a head h_i.
            normalizer: scores to weights.
            cell: kind of the unit.
        """
        super().__init__()
        self.output_size = 2 * size
        self.reader = BidirectionalEncoder(size, hidden_size // 2, cell=cell)
        self.score = score
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
        root = self.root.expand(len(states), 1, -1)
        attended = attend(
            states,
            torch.cat((root, states), dim=1),
            torch.cat((torch.zeros_like(words[:, :1]), words), dim=1),
            score=self.score,
            # A query's own position is one further among the keys, before which the root stands.
            mask=padding(lengths + 1) & ~window(0, 0),
            normalizer=self.normalizer(),
            need=need,
        )
        return torch.cat((words, attended.context), dim=-1), attended

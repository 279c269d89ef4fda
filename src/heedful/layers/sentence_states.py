"""States of sentences: a recurrent layer over the means of the words of each, for attention to words and sentences."""

from typing import Final, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.cpu.concrete import is_exporting
from heedful.cpu.threads import is_exact
from heedful.layers.embedding import draw_normal
from heedful.layers.recurrent import BidirectionalEncoder
from heedful.text.vocabulary import EOS

NUM_POSITIONS: Final = 32
"""Number of learned vectors of the position of a sentence; later sentences have the last one."""
POSITION_SIZE: Final = 16
"""Features of the vector of a position."""


@final
class SentenceStates(nn.Module):
    """State of the sentence of each word: [z_i; p_i], z of a bidirectional GRU over sentences and p_i of its position.

    Nallapati et al. 2016, arXiv:1602.06023, section 2.4, with the mean state of a sentence's words as input.

    Example:
        >>> layer = SentenceStates(8)
        >>> ids = torch.tensor([[4, EOS, 5, EOS]])  # two sentences
        >>> list(layer(torch.ones(1, 4, 8), ids, torch.tensor([4])).shape)
        [1, 4, 24]
    """

    def __init__(self, size: int) -> None:
        """Draw the parameters.

        Args:
            size: features of a word's state, and of z; an odd size is rounded up.
        """
        super().__init__()
        self.encoder = BidirectionalEncoder(size, (size + 1) // 2)
        self.positions = nn.Parameter(torch.empty(NUM_POSITIONS, POSITION_SIZE))
        draw_normal(self.positions, 0.1)
        self.output_size: Final = self.encoder.output_size + POSITION_SIZE

    def forward(
        self,
        states: Float[Tensor, "source position size"],
        ids: Int[Tensor, "source position"],
        lengths: Int[Tensor, " source"],
    ) -> Float[Tensor, "source position _"]:
        """Compute the states of the sentences.

        Args:
            states: [source, position, size] states of the words.
            ids: [source, position] token ids, in which every sentence ends in EOS.
            lengths: [source] numbers of real positions.

        Returns:
            [source, position, size + 16] state of the sentence of each word; zeros where padded.

        Cost: that of the encoder over sentences, and 2 * position * sentence * size multiply-adds per source.
        """
        positions = torch.arange(ids.shape[1], device=ids.device)
        is_real = positions < lengths[:, None]
        is_end = ((ids == EOS) | (positions == lengths[:, None] - 1)) & is_real
        counts = is_end.sum(dim=1)
        # The number of sentences of a recorded graph depends on no value, and that of an exact one on no other source.
        is_fixed = is_exporting() or is_exact()
        most = ids.shape[1] if is_fixed else int(counts.max())
        owner = is_end.cumsum(dim=1) - is_end.to(torch.int64)
        sentences = torch.arange(ids.shape[1], device=ids.device)[:most]
        belongs = ((owner[:, None] == sentences[:, None]) & is_real[:, None]).to(states.dtype)
        words = states.masked_fill(~is_real[..., None], 0.0)
        means = belongs @ words / belongs.sum(dim=-1, keepdim=True).clamp(min=1.0)
        encoded = self.encoder(means, counts).masked_fill((sentences >= counts[:, None])[..., None], 0.0)
        places = self.positions[sentences.clamp(max=NUM_POSITIONS - 1)].to(states.dtype)
        both = torch.cat((encoded, places.expand(*encoded.shape[:2], -1)), dim=-1)
        return belongs.mT @ both

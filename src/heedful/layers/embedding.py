"""Token embeddings, and an output layer that may share their weight."""

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from heedful.text.vocabulary import PAD


def draw_normal(weight: Tensor, std: float) -> None:
    """Fill a new parameter with normal random numbers; a meta parameter, which has no content, is left alone.

    Args:
        weight: drawn in place.
    """
    # On the meta device torch would import a compiler first, which takes a second at every loading of a model.
    if not weight.is_meta:
        nn.init.normal_(weight, std=std)


@final
class Embedding(nn.Module):
    """weight[token] * scale; the pad row is initialised with zeros and never trained by look-ups.

    The scale sqrt(size): Vaswani et al. 2017, arXiv:1706.03762, section 3.4.

    Example:
        >>> layer = Embedding(100, 8)
        >>> list(layer(torch.tensor([[3, 1, 4]])).shape)
        [1, 3, 8]
    """

    def __init__(self, num_tokens: int, size: int, scale: float = 1.0, std: float | None = None) -> None:
        """Draw the table.

        Args:
            num_tokens: size of the vocabulary.
            size: features of a vector.
            scale: factor of looked-up rows; sqrt(size) in the Transformer.
            std: standard deviation of the initial weights; None = size^-0.5.
        """
        super().__init__()
        self.scale = scale
        self.weight = nn.Parameter(torch.empty(num_tokens, size))
        draw_normal(self.weight, size**-0.5 if std is None else std)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, ids: Int[Tensor, "..."]) -> Float[Tensor, "... size"]:
        """Look tokens up.

        Args:
            ids: [*] token ids.

        Returns:
            [*, size].
        """
        rows = functional.embedding(ids, self.weight, padding_idx=PAD)
        return rows if self.scale == 1.0 else rows * self.scale


@final
class OutputLayer(nn.Module):
    """logits = features weight^T + bias, one for each token of the vocabulary.

    A weight that is shared with the embedding: Press and Wolf 2017, arXiv:1608.05859.

    Example:
        >>> table = Embedding(100, 8)
        >>> list(OutputLayer(100, 8, bias=False, tied_to=table)(torch.ones(2, 5, 8)).shape)
        [2, 5, 100]
    """

    def __init__(self, num_tokens: int, size: int, bias: bool, tied_to: Embedding | None = None) -> None:
        """Create or share the weight.

        Args:
            num_tokens: size of the vocabulary.
            size: features of an input.
            bias: whether each token has a bias, zero at the start.
            tied_to: embedding whose weight is shared, so that the input and output vectors of a word are the same.
        """
        super().__init__()
        if tied_to is None:
            self.weight = nn.Parameter(torch.empty(num_tokens, size))
            nn.init.xavier_uniform_(self.weight)
        else:
            self.weight = tied_to.weight
        self.bias = nn.Parameter(torch.zeros(num_tokens)) if bias else None

    def forward(self, features: Float[Tensor, "... size"]) -> Float[Tensor, "... num_tokens"]:
        """Score every token.

        Args:
            features: [*, size].

        Returns:
            [*, num_tokens] unnormalised log probabilities.
        """
        return functional.linear(features, self.weight, self.bias)

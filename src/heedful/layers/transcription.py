"""Transcription by positions alone: probability of a sequence that source positions spell in their order, with blanks.

Connectionist temporal classification: Graves, Fernandez, Gomez and Schmidhuber 2006, doi:10.1145/1143844.1143891.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from heedful.text.vocabulary import PAD


def transcription_log_probs(
    logits: Float[Tensor, "source position token"],
    lengths: Int[Tensor, " source"],
    targets: Int[Tensor, "source target"],
    target_lengths: Int[Tensor, " source"],
) -> Float[Tensor, " source"]:
    """Compute log p(y) = log of the sum over all paths of the product of p_i(path_i); Graves et al. 2006, eq. 3.

    A path has a token or the blank at each position, and spells y if y is what is left when repeated tokens are made
    one and blanks are taken out.

    Args:
        logits: scores of the tokens at each position; those of PAD are the blank's.
        lengths: real positions.
        targets: token ids y, padded with PAD.
        target_lengths: real tokens.

    Returns:
        Log probabilities; 0, without gradient, where the positions are too few for the target.

    Example:
        >>> half = torch.zeros(1, 2, 2)  # two positions, the blank and one token
        >>> ones = torch.tensor([1])
        >>> transcription_log_probs(half, 2 * ones, torch.tensor([[1]]), ones).exp().item()
        0.75
    """
    log_probs = functional.log_softmax(logits.float() if logits.dtype != torch.float64 else logits, dim=-1)
    by_position = log_probs.transpose(0, 1)
    return -functional.ctc_loss(
        by_position, targets, lengths, target_lengths, blank=PAD, reduction="none", zero_infinity=True
    )

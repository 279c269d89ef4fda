"""Integrated gradients: how the log probability of a token changes on the way from no source to the source.

Sundararajan, Taly and Yan 2017, arXiv:1703.01365.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn

from heedful.errors import UsageError
from heedful.models.inputs import TokenInputs
from heedful.models.interface import Seq2Seq
from heedful.text.vocabulary import BOS

NUM_STEPS: Final = 16
"""Default number of points on the way."""


def integrated_gradients(
    model: Seq2Seq, source: list[int], output: list[int], num_steps: int = NUM_STEPS
) -> tuple[Tensor, Tensor]:
    """Attribute the log probability of each output token to the source tokens.

    The embeddings x of the source are scaled by a from 0 to 1; the attribution of position j is the sum over features
    of x_j times the integral of d log p / d(a x_j), eq. 1, by Gauss-Legendre quadrature. Attributions of one output
    token sum to log p(token | source) - log p(token | embeddings of zero) up to the error of the quadrature.

    Args:
        model: in evaluation mode, with sources of tokens.
        source: token ids of the source, ending in EOS.
        output: token ids of the output.
        num_steps: number of points of the quadrature, 1 or more.

    Returns:
        [output, source] signed attributions in nats, and [output] the difference that they sum to.

    Raises:
        UsageError: the model has no embedding of source tokens, or num_steps is below 1.

    Cost: a forward pass over num_steps sources, and a backward pass for each output token.
    """
    embedding = getattr(model, "source_embedding", None)
    if not isinstance(embedding, nn.Module):
        raise UsageError("integrated gradients: the model has no embedding of source tokens")
    if num_steps < 1:
        raise UsageError(f"integrated gradients: num_steps must be 1 or more, got {num_steps}")
    parameter = next(model.parameters())
    points, shares = _quadrature(num_steps)
    # The two ends come last; they give the difference, and no gradient.
    scales = torch.tensor([*points, 0.0, 1.0], dtype=parameter.dtype, device=parameter.device)
    num_rows = len(scales)
    inputs = TokenInputs(
        torch.tensor([source] * num_rows, device=parameter.device),
        torch.full((num_rows,), len(source), device=parameter.device),
    )
    target_in = torch.tensor([[BOS, *output[:-1]]] * num_rows, device=parameter.device)
    with torch.inference_mode(False), torch.enable_grad(), _scaled(embedding, scales) as embedded:
        # Weights are asked for because fast forms of whole models, which never ask, have embeddings of their own.
        decoded = model(inputs, target_in, ("weights",) if model.alignment else ())
        log_probs = model.log_probs(decoded)
        gold = log_probs[:, torch.arange(len(output)), torch.tensor(output)]
        rows: list[Tensor] = []
        weights = torch.tensor([*shares, 0.0, 0.0], dtype=parameter.dtype, device=parameter.device)
        for index in range(len(output)):
            (gradient,) = torch.autograd.grad(gold[:, index].sum(), embedded[0], retain_graph=True)
            mean = torch.einsum("r,rks->ks", weights, gradient)
            rows.append((mean * embedded[1]).sum(dim=-1))
    attributions = torch.stack(rows).detach()
    if getattr(getattr(model, "config", None), "is_source_reversed", False):
        # Such models embed the words in reverse order, and EOS last.
        attributions = torch.cat((attributions[:, :-1].flip(1), attributions[:, -1:]), dim=1)
    return attributions, (gold[-1] - gold[-2]).detach()


@contextmanager
def _scaled(embedding: nn.Module, scales: Tensor) -> Generator[list[Tensor]]:
    """Context in which the first embedded sequences are scaled, one factor a row.

    Yields:
        The scaled embeddings [row, position, size], and those of one row unscaled.
    """
    embedded: list[Tensor] = []

    def scale(_: nn.Module, __: tuple[Any, ...], vectors: Tensor) -> Tensor:
        if embedded:
            return vectors  # the target, where source and target share one embedding
        scaled = (vectors.detach() * scales[:, None, None]).requires_grad_()
        embedded.extend((scaled, vectors[0].detach()))
        return scaled

    handle = embedding.register_forward_hook(scale)
    try:
        yield embedded
    finally:
        handle.remove()


def _quadrature(num_steps: int) -> tuple[list[float], list[float]]:
    """Points in [0, 1] of Gauss-Legendre quadrature, and their weights, which sum to 1."""
    from numpy.polynomial.legendre import leggauss

    points, weights = leggauss(num_steps)
    return [(point + 1) / 2 for point in points.tolist()], [weight / 2 for weight in weights.tolist()]

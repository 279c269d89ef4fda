"""Muon: momentum whose matrices are orthogonalised before each update, and Adam for all other parameters.

Jordan et al. 2024, https://kellerjordan.github.io/posts/muon. An update moves a matrix about equally in all directions,
where Adam's follows the few that dominate the gradient. Vocabulary tables, biases and normalisations are Adam's.
"""

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from typing import Any, Final, final

import torch
from torch import Tensor
from torch.optim.adamw import adamw

NUM_ITERATIONS: Final = 5
COEFFICIENTS: Final = (3.4445, -4.7750, 2.0315)
"""a, b, c of the iteration X <- aX + (bA + cA^2)X with A = XX^T, which brings singular values in (0, 1] close to 1."""
UPDATE_SIZE: Final = 0.2
"""Root mean square of a matrix's update at a learning rate of 1, about that of Adam, so that one rate suits both; Liu
et al. 2025, arXiv:2502.16982, section 2.2."""
_SMALLEST_NORM: Final = 1e-30
_torch: Final[Any] = torch
"""PyTorch with its operations on lists of tensors, which have no public names."""


def orthogonalize(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Bring the singular values of matrices close to 1; Jordan et al. 2024.

    Args:
        matrices: [matrix, row, column], with at least as many columns as rows.
        dtype: dtype of the products; bfloat16 is enough for an update.

    Returns:
        [matrix, row, column] of this dtype; singular values that were not tiny are between 0.6 and 1.3.

    Cost: 15 products of matrices.
    """
    a, b, c = COEFFICIENTS
    norms = matrices.flatten(1).norm(dim=1).clamp_min(_SMALLEST_NORM)
    x = (matrices / norms[:, None, None]).to(dtype)
    for _ in range(NUM_ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def square_maps(weight: Tensor) -> Sequence[Tensor]:
    """Split a matrix of several square maps of one input, such as query, key and value, into these maps.

    Args:
        weight: [row, column].

    Returns:
        Views of two or three square matrices, or the whole matrix.
    """
    rows, columns = weight.shape
    return weight.split(columns) if rows in (2 * columns, 3 * columns) else (weight,)


@final
class Muon(torch.optim.Optimizer):
    """Momentum with orthogonalised updates for matrices, and AdamW for the other parameters."""

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        learning_rate: float,
        momentum: float,
        betas: tuple[float, float],
        epsilon: float,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Create an optimizer without state.

        Args:
            groups: groups of parameters with "is_matrix", whether they are matrices to orthogonalise, and
                "weight_decay".
            momentum: share of the momentum that a step keeps.
            betas: Adam's.
            epsilon: Adam's.
            dtype: dtype of the products that orthogonalise.
        """
        super().__init__(groups, {"lr": learning_rate, "weight_decay": 0.0, "is_matrix": False, "fused": True})
        self._momentum = momentum
        self._betas = betas
        self._epsilon = epsilon
        self._dtype = dtype

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters along their gradients.

        Args:
            closure: unused; torch's optimizers take one.
        """
        for group in self.param_groups:
            gradients = {each: each.grad for each in group["params"] if each.grad is not None}
            update = self._update_matrices if group["is_matrix"] else self._update_others
            if gradients:
                update(gradients, float(group["lr"]), float(group["weight_decay"]))

    def _update_matrices(self, gradients: dict[Tensor, Tensor], rate: float, decay: float) -> None:
        """Update W by -rate (decay W + 0.2 sqrt(max(rows, columns)) orthogonal(G + momentum)); blocks by themselves."""
        weights, slopes = [*gradients], [*gradients.values()]
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        momenta = [self.state[weight]["momentum"] for weight in weights]
        # One launch for all matrices on a GPU.
        _torch._foreach_lerp_(momenta, slopes, 1.0 - self._momentum)
        ahead = _torch._foreach_lerp(slopes, momenta, self._momentum)  # Nesterov's
        _torch._foreach_mul_(weights, 1.0 - rate * decay)
        by_shape: dict[torch.Size, list[tuple[Tensor, Tensor]]] = {}
        for weight, direction in zip(weights, ahead, strict=True):
            for block, part in zip(square_maps(weight), square_maps(direction), strict=True):
                pair = (block, part) if block.shape[0] <= block.shape[1] else (block.mT, part.mT)
                by_shape.setdefault(pair[0].shape, []).append(pair)
        for shape, pairs in by_shape.items():
            # Matrices of one shape are multiplied together.
            updates = orthogonalize(torch.stack([part for _, part in pairs]), self._dtype)
            blocks = [block for block, _ in pairs]
            scale = -rate * UPDATE_SIZE * sqrt(shape[1])
            _torch._foreach_add_(blocks, [*updates.to(blocks[0].dtype).unbind()], alpha=scale)

    def _update_others(self, gradients: dict[Tensor, Tensor], rate: float, decay: float) -> None:
        for parameter in gradients:
            state = self.state[parameter]
            if not state:
                # Adam's fused form counts on the parameter's device; "fused" in the groups makes a resume do so too.
                state["step"] = torch.zeros((), device=parameter.device)
                state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        states = [self.state[parameter] for parameter in gradients]
        adamw(
            [*gradients],
            [*gradients.values()],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            amsgrad=False,
            beta1=self._betas[0],
            beta2=self._betas[1],
            lr=rate,
            weight_decay=decay,
            eps=self._epsilon,
            maximize=False,
        )

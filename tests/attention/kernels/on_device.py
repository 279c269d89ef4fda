"""Calls of Triton kernels with tensors of the CPU, computed where the kernels run.

Contracts and references lie on the CPU, in float64. On a device, queries and keys move there after they are lowered,
and results move back; gradients take the same way. Kernels compute in float64 there for tests alone.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from heedful.attention import dispatch
from heedful.attention.interface import Attended, Normalizer, Score
from heedful.attention.kernels import devices
from heedful.attention.masks import Mask
from heedful.attention.softmax import SOFTMAX
from heedful.attention.tensor_tree import map_leaves
from tests.attention.kernels.interpreter import DEVICE
from tests.contracts.errors import Ready


@contextmanager
def with_float64() -> Generator[None]:
    """Let Triton kernels take float64 on a device, as they do in the interpreter."""
    with patch.object(devices, "_DTYPES", devices._DTYPES | {torch.float64}):  # pyright: ignore[reportPrivateUsage]
        yield


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    score: Score,
    mask: Mask | None = None,
    normalizer: Normalizer = SOFTMAX,
    kernel: str = "auto",
    device: str = DEVICE,
    **more: Any,
) -> Attended:
    """Result of `attend`; a Triton kernel computes it on its device."""
    if "triton" not in kernel or device == "cpu":
        return dispatch.attend(query, key, value, score=score, mask=mask, normalizer=normalizer, kernel=kernel, **more)
    pairs = score.lower(query, score.prepare(key), normalizer.inverse_temperature)
    pairs, value = map_leaves((pairs, value), lambda tensor: tensor.to(device))
    settings: dict[str, Any] = {"mask": mask, "normalizer": normalizer, "kernel": kernel, **more}
    with with_float64():
        attended = dispatch.attend(pairs.query, pairs.key, value, score=Ready(pairs, score.max_keys), **settings)
    return map_leaves(attended, lambda tensor: tensor.to(query.device))

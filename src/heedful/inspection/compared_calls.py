"""Proof that watching a model changes nothing: each call runs twice, watched and alone, and outputs are compared."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from heedful.errors import CaptureChanged

ROUNDING: Final = 8.0
"""Largest difference that counts as rounding, times the machine epsilon of the dtype to the power 3/4 and the largest
number of the output: 5e-5 for an output of 1 in float32, 1e-11 in float64."""


@contextmanager
def compared_calls(model: nn.Module, watching: Callable[[], AbstractContextManager[None]]) -> Generator[None]:
    """Run every call of a model twice within the context, watched and alone.

    The second call begins with the random state and the buffers of the first, and leaves both as the first left them.

    Args:
        model: the model; its outputs are tensors, or mappings, sequences and dataclasses of them.

    Yields:
        Nothing.

    Raises:
        CaptureChanged: the outputs of the two calls differ by more than rounding.
    """
    forward = model.forward
    before = model.__dict__.get("forward")

    def twice(*inputs: Any, **options: Any) -> Any:
        random_state, buffers = _random_state(), [each.clone() for each in model.buffers()]
        with watching():
            watched = forward(*inputs, **options)
        state_after, buffers_after = _random_state(), [each.clone() for each in model.buffers()]
        _set_random_state(random_state)
        _set_buffers(model, buffers)
        try:
            alone = forward(*inputs, **options)
        finally:
            _set_random_state(state_after)
            _set_buffers(model, buffers_after)
        require_equal(watched, alone, type(model).__name__)
        return watched

    model.__dict__["forward"] = twice
    try:
        yield
    finally:
        if before is None:
            del model.__dict__["forward"]
        else:
            model.__dict__["forward"] = before


def require_equal(watched: object, alone: object, name: str) -> None:
    """Compare the outputs of two calls.

    Args:
        alone: output of the other.

    Raises:
        CaptureChanged: they differ by more than rounding.
    """
    pairs = list(zip(_tensors(watched), _tensors(alone), strict=False))
    if len(pairs) != len(list(_tensors(alone))) or len(pairs) != len(list(_tensors(watched))):
        raise CaptureChanged(f"capture: {name} returned another number of tensors while it was watched")
    for one, other in pairs:
        if one.shape != other.shape or one.dtype != other.dtype:
            raise CaptureChanged(
                f"capture: {name} returned {list(one.shape)} {one.dtype} while it was watched, and "
                f"{list(other.shape)} {other.dtype} alone"
            )
        one, other = one.detach(), other.detach()
        if torch.equal(one, other) or one.numel() == 0:
            continue
        largest = 0.0
        if one.is_floating_point():
            known = other.isfinite()
            scale = float(other[known].abs().max()) if known.any() else 1.0
            largest = ROUNDING * torch.finfo(one.dtype).eps ** 0.75 * scale
        if not torch.allclose(one, other, rtol=0.0, atol=largest, equal_nan=True):
            raise CaptureChanged(
                f"capture: {name} returned other numbers while it was watched, up to "
                f"{float((one.double() - other.double()).abs().max()):.3g} apart; do not use this record"
            )


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield from value.unbind() if value.is_nested else (value,)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _tensors(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _tensors(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            yield from _tensors(getattr(value, one.name))


def _random_state() -> list[Tensor]:
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    return [torch.get_rng_state(), *gpus]


def _set_random_state(state: list[Tensor]) -> None:
    torch.set_rng_state(state[0])
    if state[1:]:
        torch.cuda.set_rng_state_all(state[1:])


def _set_buffers(model: nn.Module, values: list[Tensor]) -> None:
    with torch.no_grad():
        for buffer, value in zip(model.buffers(), values, strict=True):
            buffer.copy_(value)

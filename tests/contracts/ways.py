"""Ways to run `attend`, and the scores, masks and normalizers each is tried with: from the tables, few of many."""

import math
import random
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, product
from typing import NamedTuple
from unittest.mock import patch

import torch

from heedful.attention import dispatch
from heedful.attention import tiled_attention as tiled
from heedful.attention.attention_inputs import AttentionInputs
from heedful.attention.interface import Attended
from heedful.attention.kernels import window
from heedful.attention.kernels.interface import Request
from heedful.attention.kernels.window import Window
from heedful.attention.lowered import LoweredDistance
from heedful.attention.mask_bounds import MaskBounds
from heedful.attention.normalizers import NORMALIZERS
from heedful.attention.scores import SCORES
from heedful.attention.tile_autograd import Compute, in_tiles
from heedful.attention.tiled_attention import Tiled
from tests.attention.cases import MASKS, Case, make_score
from tests.attention.kernels.interpreter import DEVICE
from tests.attention.kernels.on_device import attend, with_float64

SHAPES = ((3, 4), (2, 32))
"""Queries and keys; the second is one where windows are narrow."""


@contextmanager
def small_tiles() -> Generator[None]:
    """Let whatever goes by tiles go by three of them, the last one smaller, however small the call."""
    by_rows = partial(_in_three, in_tiles)
    with (
        patch.object(tiled, "WHOLE", 0),
        patch.object(window, "WHOLE", 0),
        patch.object(tiled, "in_tiles", by_rows),
        patch.object(window, "in_tiles", by_rows),
    ):
        yield


def _in_three(
    in_tiles: Callable[[Compute, AttentionInputs, Request, int], Attended],
    compute: Compute,
    operands: AttentionInputs,
    request: Request,
    _: int,
) -> Attended:
    return in_tiles(compute, operands, request, max(1, math.ceil(request.num_queries / 3)))


@dataclass(frozen=True)
class Way:
    """A kernel, in small tiles or as it likes."""

    kernel: str
    is_tiled: bool = False

    def __call__(self, case: Case) -> Attended:
        with small_tiles() if self.is_tiled else nullcontext():
            attended = attend(
                *case.inputs,
                score=case.score,
                mask=case.mask,
                normalizer=case.normalizer,
                need=case.need,
                kernel=self.kernel,
            )
        assert attended.kernel == self.kernel
        return attended

    def __str__(self) -> str:
        return f"{self.kernel} in tiles" if self.is_tiled else self.kernel


PLAIN = Way("plain")


def ways() -> list[Way]:
    """Every kernel, and those that go by tiles a second time in small ones."""
    tileable = [kernel.name for kernel in dispatch.KERNELS if isinstance(kernel, Tiled | Window)]
    return [*(Way(kernel.name) for kernel in dispatch.KERNELS), *(Way(name, True) for name in tileable)]


class Combination(NamedTuple):
    """Names from the tables, and a shape."""

    score: str
    mask: str
    normalizer: str
    num_queries: int
    num_keys: int

    def __str__(self) -> str:
        return f"{self.score} x {self.mask} x {self.normalizer}"


def supported(way: Way) -> list[Combination]:
    """All combinations that a kernel takes, by its own word, each in the first shape in which it does."""
    kernel = next(kernel for kernel in dispatch.KERNELS if kernel.name == way.kernel)
    facts = {score: _facts(score) for score in SCORES}
    found: list[Combination] = []
    place = DEVICE if "triton" in way.kernel else "cpu"
    for score, mask, normalizer in product(SCORES, MASKS, NORMALIZERS):
        kind = NORMALIZERS[normalizer]
        if way.is_tiled and kind.scope == "matrix":
            continue  # it needs all queries at once, so there are no tiles
        for shape in SHAPES:
            rows = _rows(mask, *shape)
            request = facts[score](
                num_queries=shape[0],
                num_keys=shape[1],
                device=place,
                normalizer=kind,
                mask="none" if rows is None else "interval" if rows.dense is None else "dense",
                width=None if rows is None else rows.width,
                has_gaussian=rows is not None and rows.gaussian is not None,
                is_cut=rows is not None and rows.gaussian is not None and rows.gaussian.reach is not None,
            )
            with with_float64():
                reason = kernel.why_not(request)
            if reason is None:
                found.append(Combination(score, mask, normalizer, *shape))
                break
    return found


def _facts(score: str) -> Callable[..., Request]:
    made = make_score(score, 4)
    zeros = [torch.zeros(1, size, dtype=torch.float64) for size in (made.query_size, made.key_size)]
    pairs = made.lower(zeros[0], made.prepare(zeros[1]))
    profile = pairs.profile if isinstance(pairs, LoweredDistance) else ""
    has_bias = pairs.bias is not None
    return partial(Request, pairs=type(pairs), profile=profile, dtype=torch.float64, has_bias=has_bias)


@cache
def _rows(mask: str, num_queries: int, num_keys: int) -> MaskBounds | None:
    made = MASKS[mask].make(torch.tensor([num_keys]), num_queries, num_keys)
    return None if made is None else made.rows(num_queries, num_keys, torch.device("cpu"))


def covering(candidates: Sequence[Combination], strength: int, places: Sequence[int] = (0, 1, 2)) -> list[Combination]:
    """Few of them, in which every score, mask and normalizer (strength 2: pair of these) occurs that does so in all.

    Other `places` leave out masks (1), for example.
    """
    parts = {each: frozenset(combinations([(place, each[place]) for place in places], strength)) for each in candidates}
    missing = {part for each in parts.values() for part in each}
    shuffled = random.Random(0).sample(list(candidates), len(candidates))
    taken: list[Combination] = []
    for gain in range(len(list(combinations(places, strength))), 0, -1):
        for each in shuffled:
            if len(parts[each] & missing) >= gain:
                missing -= parts[each]
                taken.append(each)
    return taken

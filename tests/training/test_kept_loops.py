"""A process that compiles the loops of a training computes what those compute that find them on disk.

Otherwise a first training on a machine, stopped and gone on with, would end with other bits than one that ran through.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.thorough import is_thorough, thorough

SCRIPT = """
import sys
from hashlib import sha256

import numpy as np
from numba import njit

from heedful.cpu import numba_math as lanes

part, helpers = sys.argv[1:]
if helpers == "apart":
    lanes.inlined = lambda *flags: njit(error_model="numpy", fastmath=set(flags))
generator = np.random.default_rng(0)


def normal(*shape):
    return generator.standard_normal(shape).astype(np.float32)


def narrow(*shape):
    return (normal(*shape).view(np.int32) >> 16).astype(np.int16)


def tell(*arrays):
    print(*(sha256(array.tobytes()).hexdigest()[:12] for array in arrays))


rows, size = 33, 256
if part == "fused":
    from heedful.layers.cpu import layernorm_numba as loops

    vectors, weight, bias, facts = normal(rows, size), normal(size), normal(size), np.zeros((rows, 2), np.float32)
    given, out, wide = narrow(rows, size), narrow(rows, size), normal(rows, size)
    chance = (0, 1 << 40 | 5, 1 << 29, 8 / 7)
    loops.normalize(vectors, weight, bias, 1e-5, out, facts)
    tell(out, facts)
    sums = np.zeros((2, size), np.float32)
    loops.normalize_backward(vectors, weight, facts, given, vectors, wide, sums)
    tell(wide, sums)
    if helpers == "inlined":
        loops.add_dropped(vectors, given, bias, *chance, wide)
        loops.drop(vectors, *chance, out, sums[0])
        tell(wide, out, sums)
        loops.rectify_backward(given, narrow(rows, size), out, sums[0])
        loops.rectify(given, bias)
        tell(given, out, sums)
elif part == "packed":
    from heedful.layers.cpu import packed_attention_numba as loops

    starts, lengths = np.array([0, 9, 20]), np.array([9, 11, 13])
    heads, given, bias = narrow(3, 4, 16, 64), narrow(rows, size), normal(size)
    loops.take(given, 0, bias, starts, lengths, 0, heads)
    loops.put(heads, starts, lengths, 0, 0, given, bias)
    tell(heads, given, bias)
    scores = narrow(3, 4, 16, 16)
    loops.weigh(scores, lengths, lengths, 0, True, 0.125)
    flat = scores.reshape(-1, 16, 16)
    slopes = narrow(*flat.shape)
    loops.differentiate(flat.reshape(-1, 16), slopes.reshape(-1, 16), 0.125)
    tell(scores, slopes)
else:
    import torch

    if part == "losses":
        from heedful.training.cross_entropy import linear_cross_entropy

        inputs = [torch.from_numpy(normal(*shape)).requires_grad_() for shape in ((rows, 16), (777, 16), (777,))]
        gold = torch.arange(rows) * 3
        result = linear_cross_entropy(*inputs, gold, 0.1).total
    else:
        from heedful.attention import attend
        from heedful.attention.scores import Additive

        inputs = [torch.from_numpy(normal(*shape)).requires_grad_() for shape in ((3, 9, 24), (3, 33, 24))]
        torch.manual_seed(0)
        score = Additive(24, 24, 130)
        result = attend(*inputs, inputs[1], score=score).context.square().sum()
    result.backward()
    tell(result.detach().numpy(), *(one.grad.numpy() for one in inputs))
"""


def told(folder: Path, part: str, helpers: str = "inlined") -> str:
    """Run a process that keeps its loops in a folder, and return the bits that it computed."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SCRIPT, part, helpers]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.mark.parametrize("part", ["losses", *map(is_thorough, ("fused", "additive", "packed"))])
def test_the_first_process_computes_what_later_ones_do(tmp_path: Path, part: str):
    first = told(tmp_path, part)
    assert [*tmp_path.rglob("*.kernel")]
    assert first == told(tmp_path, part)


@thorough
def test_functions_apart_from_their_loops_would_be_seen(tmp_path: Path):
    """What Numba does by itself; should it cease to, the rule has lost its reason."""
    if not torch.cpu._is_avx512_supported():  # pyright: ignore[reportPrivateUsage]
        pytest.skip("both ways give the same bits on this processor")
    assert told(tmp_path, "fused", "apart") != told(tmp_path, "fused", "apart")

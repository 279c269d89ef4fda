"""Attention on a CPU against the obvious alternative, both sides in one run.

    python benchmarks/attention.py [--only additive,memory,local,chain,tree,smoothing,compile]

Every ratio is alternative / ours, of medians, the two sides taking turns. Floors: additive attention in exponential
form needs 0.14 cycles an element and core at least (9 multiply-add slots for 32 elements); a dot product
needs 2 * query * key * depth operations at the rate of a large matrix product.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heedful.attention.dispatch import attend
from heedful.attention.masks import local_predictive, padding
from heedful.attention.scores import Additive, Gaussian, ScaledDot
from heedful.attention.structured_chain import binary_chain_log_odds
from heedful.attention.structured_tree import projective_tree_marginals

PORT_FLOOR = 0.14
"""Cycles an element and core."""


def medians(*sides: Callable[[], object], repeats: int = 7) -> list[float]:
    """Seconds of each side, which take turns, after one warm-up call each."""
    times: list[list[float]] = [[] for _ in sides]
    for repeat in range(repeats + 1):
        for side, taken in zip(sides, times, strict=True):
            started = time.perf_counter()
            side()
            if repeat:
                taken.append(time.perf_counter() - started)
    return [statistics.median(taken) for taken in times]


def row(what: str, ours: float, other: float, wanted: str) -> None:
    """Print one line of the table."""
    print(f"{what:58} {ours * 1e3:10.2f} ms {other * 1e3:10.2f} ms {other / ours:8.1f}x   {wanted}", flush=True)


def clock_hertz() -> float:
    """Cycles a second, from a chain of dependent additions: one takes one cycle on every core of today."""
    from numba import njit

    @njit
    def chain(n: int) -> int:
        state = 1
        for _ in range(n):
            state = (state * 5) ^ (state >> 3)
        return state

    chain(10)
    started = time.perf_counter()
    chain(50_000_000)
    # lea (1 cycle; beside it the shift), xor (1 cycle): two cycles a round.
    return 2 * 50_000_000 / (time.perf_counter() - started)


def eager(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    """Additive scores as everyone writes them."""
    return torch.tanh(query[:, :, None] + key[:, None]) @ vector


def additive() -> None:
    """The kernel against the formula, forward and backward, and against dot-product attention."""
    from heedful.attention.kernels.additive.cpu_ops import additive_scores

    torch.manual_seed(0)
    b, n, h = 8, 128, 512
    query, key = torch.randn(b, n, h), torch.randn(b, n, h)
    vector = torch.randn(h) / h**0.5
    with torch.no_grad():
        ours, other = medians(lambda: additive_scores(query, key, vector), lambda: eager(query, key, vector))
    row("additive scores, forward, b=8 n=m=128 h=512", ours, other, ">= 60x, stretch 120x")
    with torch.no_grad():
        # By itself too: in turn with the formula, it finds the cache full of the formula's 268 MB.
        (alone,) = medians(lambda: additive_scores(query, key, vector), repeats=21)
    scale = clock_hertz() * torch.get_num_threads() / (b * n * n * h)
    for seconds, how in ((ours, "in turn with it"), (alone, "by itself")):
        cycles = seconds * scale
        share = cycles / PORT_FLOOR
        print(f"{how:58} {cycles:.3f} cycles an element and core: {share:.1f}x the floor   <= 3x, stretch 2x")

    leaves = [tensor.clone().requires_grad_() for tensor in (query, key, vector)]
    upstream = torch.randn(b, n, n)

    def both(scores: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        torch.autograd.grad(scores(*leaves), leaves, upstream)

    ours, other = medians(lambda: both(additive_scores), lambda: both(eager), repeats=5)
    row("additive scores, forward + backward", ours, other, ">= 40x")

    value = torch.randn(b, n, h)
    score, dot = Additive(h, h, h), ScaledDot(h, h)
    with torch.no_grad():
        mapped, prepared = score.query_projection(query), score.prepare(key)
        lowered = score.lower(query, prepared)

        def whole() -> Tensor:
            scores = additive_scores(mapped, lowered.key, score.vector, lowered.exp_key)
            return torch.softmax(scores, dim=-1) @ value

        ours, other = medians(whole, lambda: attend(query, key, value, score=dot, kernel="plain").context)
        row("scaled dot over additive, scores and context", ours, other, ">= 0.25x")


def compiled() -> None:
    """The kernel against the compiled formula."""
    from heedful.attention.kernels.additive.cpu_ops import additive_scores

    query, key, vector = torch.randn(8, 128, 512), torch.randn(8, 128, 512), torch.randn(512) / 512**0.5
    recorded = torch.compile(eager)
    with torch.no_grad():
        ours, other = medians(lambda: additive_scores(query, key, vector), lambda: recorded(query, key, vector))
    row("additive scores, forward, against torch.compile", ours, other, ">= 3x")


def memory() -> None:
    """Peak memory of the process over that of inputs, outputs and gradients; on Linux, whose kernel keeps the peak."""
    import subprocess
    import sys

    script = (
        "import ctypes, sys, torch\n"
        "from heedful.attention.dispatch import attend\n"
        "from heedful.attention.scores import Additive\n"
        "torch.manual_seed(0)\n"
        "n, h = int(sys.argv[1]), 64\n"
        "score = Additive(h, h, h)\n"
        "def run(n):\n"
        "    q, k, v = (torch.randn(1, n, h, requires_grad=True) for _ in range(3))\n"
        "    c = attend(q, k, v, score=score)\n"
        "    g = torch.autograd.grad(c.context, (q, k, v), torch.ones_like(c.context))\n"
        "    return q, k, v, c, g\n"
        "def status(name):\n"
        "    lines = open('/proc/self/status').read().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith(name))\n"
        "run(3000)\n"  # compiles, and loads what there is to load, tiles and threads too
        "ctypes.CDLL(None).malloc_trim(0)\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"  # the peak was that of compiling
        "before = status('VmRSS')\n"
        "kept = run(n)\n"
        "print((status('VmHWM') - before) * 1024)\n"
    )
    for n in (4096, 8192, 16384):
        done = subprocess.run([sys.executable, "-c", script, str(n)], capture_output=True, text=True, check=True)
        grown, needed = int(done.stdout), 8 * n * 64 * 4  # 3 inputs, 1 output, 1 gradient of it, 3 gradients
        print(
            f"additive forward + backward, n=m={n}, h=64: {grown / 2**20:.0f} MiB grown, inputs, outputs and gradients "
            f"{needed / 2**20:.0f} MiB, beyond them {(grown - needed) / needed:.2f} of their size   <= 2"
        )


def local() -> None:
    """One query of local-p attention over sources of growing length: the time should not grow."""
    torch.manual_seed(0)
    score = Additive(256, 256, 256)
    times: list[float] = []
    sources = (1024, 4096, 16384)
    calls: list[Callable[[], object]] = []
    for length in sources:
        key, value, query = torch.randn(4, length, 256), torch.randn(4, length, 256), torch.randn(4, 1, 256)
        with torch.no_grad():
            prepared = score.prepare(key)
        mask = local_predictive(torch.full((4, 1), length / 2 + 0.3), 10) & padding(torch.full((4,), length))

        def call(
            query: Tensor = query, prepared: object = prepared, value: Tensor = value, mask: object = mask
        ) -> None:
            for _ in range(50):
                attend(query, prepared, value, score=score, mask=mask)  # type: ignore[arg-type]

        calls.append(call)
    with torch.no_grad():
        times = [seconds / 50 for seconds in medians(*calls)]
    listed = ", ".join(f"{length}: {seconds * 1e6:.0f} us" for length, seconds in zip(sources, times, strict=True))
    print(f"local-p, D=10, one query, keys prepared: {listed}; last / first {times[-1] / times[0]:.2f}   <= 1.3")


def chain_by_loop(scores: Tensor, transition: Tensor) -> Tensor:
    """Marginals of state 1, [batch, position], by the forward-backward algorithm in a Python loop over positions."""
    states = torch.stack([torch.zeros_like(scores), scores], dim=-1)
    onward, back = [states[:, 0]], [torch.zeros_like(states[:, 0])]
    for position in range(1, states.shape[1]):
        onward.append(torch.logsumexp(onward[-1][:, :, None] + transition, dim=1) + states[:, position])
    for position in range(states.shape[1] - 1, 0, -1):
        back.append(torch.logsumexp(transition + (states[:, position] + back[-1])[:, None, :], dim=2))
    return torch.softmax(torch.stack(onward, dim=1) + torch.stack(back[::-1], dim=1), dim=-1)[..., 1]


def chain() -> None:
    """Marginals of linear chains against a Python loop over positions, and the gradients of both."""
    torch.manual_seed(0)
    scores, transition = torch.randn(32, 512), torch.randn(2, 2)

    def ours(scores: Tensor, transition: Tensor) -> Tensor:
        return binary_chain_log_odds(scores, transition)[0].sigmoid()

    def gradients(marginals: Callable[[Tensor, Tensor], Tensor], dtype: torch.dtype) -> tuple[Tensor, ...]:
        leaves = [tensor.to(dtype).requires_grad_() for tensor in (scores, transition)]
        return torch.autograd.grad(marginals(*leaves), leaves, upstream.to(dtype))

    upstream = torch.randn_like(scores)
    with torch.no_grad():
        one, two = medians(lambda: ours(scores, transition), lambda: chain_by_loop(scores, transition))
    row("chain marginals, T=512 b=32", one, two, ">= 5x")
    pairs = zip(gradients(ours, torch.float64), gradients(chain_by_loop, torch.float64), strict=True)
    error = max(float((a - b).abs().max()) for a, b in pairs)
    one, two = medians(lambda: gradients(ours, torch.float32), lambda: gradients(chain_by_loop, torch.float32))
    row(f"the same and gradients (they agree to {error:.0e})", one, two, ">= 5x")


def tree_by_chart(scores: Tensor) -> Tensor:
    """Inside of one sentence by Eisner's algorithm, a Python loop over spans; autograd gives the marginals."""
    num = scores.shape[-1]
    zero = scores.new_zeros(())
    right = {(i, i): zero for i in range(num)}
    left = dict(right)
    open_right: dict[tuple[int, int], Tensor] = {}
    open_left: dict[tuple[int, int], Tensor] = {}
    for width in range(1, num):
        for i in range(num - width):
            j = i + width
            joined = torch.logsumexp(torch.stack([right[i, k] + left[k + 1, j] for k in range(i, j)]), 0)
            open_right[i, j] = joined + scores[i, j]
            if i > 0:
                open_left[i, j] = joined + scores[j, i]
                left[i, j] = torch.logsumexp(torch.stack([left[i, k] + open_left[k, j] for k in range(i, j)]), 0)
            else:
                left[i, j] = scores.new_full((), -1e9)
            right[i, j] = torch.logsumexp(torch.stack([open_right[i, k] + right[k, j] for k in range(i + 1, j + 1)]), 0)
    return right[0, num - 1]


def tree() -> None:
    """Marginals of projective trees against a chart of Python loops, one sentence of the batch timed for all."""
    torch.manual_seed(0)
    batch, nodes = 16, 65
    scores = torch.randn(batch, nodes, nodes)

    def chart() -> Tensor:
        leaf = scores[0].clone().requires_grad_()
        return torch.autograd.grad(tree_by_chart(leaf), leaf)[0]

    ours, one = medians(lambda: projective_tree_marginals(scores), chart, repeats=3)
    distance = float((projective_tree_marginals(scores).weights[0] - chart()).abs().max())
    row(f"tree marginals, n=64 b=16 (they agree to {distance:.0e})", ours, batch * one, ">= 10x")


def smoothing() -> None:
    """Nadaraya-Watson against attention with the augmented key, and against KeOps where it is installed."""
    torch.manual_seed(0)
    n = 20_000
    query, key, value = torch.randn(n, 3), torch.randn(n, 3), torch.randn(n, 1)
    score = Gaussian(3, 3, bandwidth=0.5)

    def ours() -> Tensor:
        return attend(query, key, value, score=score).context

    def augmented() -> Tensor:
        centred = key - key.mean(dim=0)
        moved = (query - key.mean(dim=0)) / 0.25
        long_query = torch.cat((moved, torch.ones(n, 1)), dim=-1)
        long_key = torch.cat((centred, -centred.square().sum(dim=-1, keepdim=True) / 0.5), dim=-1)
        padded = torch.nn.functional.pad(value, (0, 3))
        attended = torch.nn.functional.scaled_dot_product_attention(
            long_query[None, None], long_key[None, None], padded[None, None], scale=1.0
        )
        return attended[0, 0, :, :1]

    with torch.no_grad():
        one, two = medians(ours, augmented, repeats=5)
        some = slice(0, 500)
        exact = attend(query[some].double(), key.double(), value.double(), score=score.double(), kernel="plain").context
        score.float()
        error = float((ours()[some].double() - exact).abs().max())
        row(f"Nadaraya-Watson, n=m=20,000 d=3, against SDPA (error {error:.0e})", one, two, "error <= 1e-5")
        try:
            from pykeops.torch import LazyTensor
        except ImportError:
            print("KeOps is not installed: pip install pykeops==2.3")
            return

        def keops() -> Tensor:
            differences = LazyTensor(query[:, None, :].contiguous()) - LazyTensor(key[None, :, :].contiguous())
            scores = -(differences**2).sum(-1) / 0.5
            return scores.sumsoftmaxweight(LazyTensor(value[None, :, :].contiguous()), dim=1)

        one, two = medians(ours, keops, repeats=3)
        row("Nadaraya-Watson against KeOps", one, two, ">= 4x, stretch 10x")


PARTS: dict[str, Callable[[], None]] = {
    "additive": additive,
    "compile": compiled,
    "memory": memory,
    "local": local,
    "chain": chain,
    "tree": tree,
    "smoothing": smoothing,
}


def main(names: Sequence[str]) -> None:
    """Run the parts named."""
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'':58} {'ours':>13} {'other':>13} {'ratio':>9}   wanted")
    for name in names:
        PARTS[name]()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PARTS), help="some of the parts, separated by commas")
    main(parser.parse_args().only.split(","))

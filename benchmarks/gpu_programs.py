"""Compile every Triton program of ours ahead of time, without a device, and say what registers and memory each needs.

    python benchmarks/gpu_programs.py [--capability 90] [--only WORD]

What the interpreter runs may still not compile: types of variables must stay the same in a loop. A stack means that
registers did not do. Triton must be installed (pip install 'heedful[gpu]'); TRITON_INTERPRET must not be set.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

FLOATS: Final = (
    "query key value scores centre scalars context summaries weights grad summary_grads slopes sums own other own_grad "
    "table rows_of out features vector_grad vector shift nodes"
).split()
LONGS: Final = ("index", "start", "stop", "seeds", "best")
EVEN: Final = ("num_keys", "value_size", "depth", "num_queries", "hidden", "own_stride", "num_owns", "num_others")
"""Sizes that are multiples of 16 in practice, which lets the compiler read several numbers at once."""
PLAIN: Final = {
    "KIND": 0,
    "PROFILE": 0,
    "HAS_ROWS": True,
    "HAS_DENSE": False,
    "HAS_GAUSSIAN": False,
    "HAS_NOISE": False,
    "IS_RELAXED": False,
    "IS_ONE_HOT": False,
    "HAS_DROPOUT": False,
    "PRECISION": "ieee",
    "ROWS": 32,
    "COLUMNS": 64,
}
FORWARD: Final = {**PLAIN, "HAS_WEIGHTS": False, "WIDTH": 128}
BACKWARD: Final = {**PLAIN, "IS_SOFT_BACKWARD": True, "WIDTH": 64}
DISTANCES: Final = {"KIND": 2, "COLUMNS": 32}
HALF: Final = dict.fromkeys(("query", "key", "value", "context", "grad"), "*bf16")
ONES: Final = dict.fromkeys(("batch", "num_queries", "num_keys", "num_rows", "depth", "value_size"), 1)


class Job(NamedTuple):
    """One program with settings."""

    label: str
    program: Any
    constants: dict[str, Any]
    warps: int = 8
    types: Mapping[str, str] = MappingProxyType({})


def jobs() -> Iterator[Job]:
    from heedful.attention.kernels.additive import triton_kernels as additive_programs
    from heedful.attention.kernels.distance import triton_kernels as distance_programs
    from heedful.attention.kernels.fused import triton_kernels as attention_programs

    attend, slope = attention_programs.attend_rows, attention_programs.slope_rows
    everything = {"HAS_DENSE": True, "HAS_GAUSSIAN": True, "HAS_DROPOUT": True}
    yield Job("attend_rows additive", attend, FORWARD)
    yield Job("attend_rows additive, bfloat16", attend, {**FORWARD, "PRECISION": "tf32"}, types=HALF)
    yield Job("attend_rows additive, one of each", attend, {**FORWARD, **ONES, "WIDTH": 16})
    yield Job("attend_rows additive, all masks, dropout", attend, {**FORWARD, **everything, "HAS_WEIGHTS": True})
    yield Job("attend_rows additive, sampled", attend, {**FORWARD, "HAS_NOISE": True, "IS_ONE_HOT": True})
    yield Job("attend_rows additive, gumbel-softmax", attend, {**FORWARD, "HAS_NOISE": True, "IS_RELAXED": True})
    yield Job("attend_rows dot, hard", attend, {**FORWARD, "KIND": 1, "IS_ONE_HOT": True})
    yield Job("attend_rows gaussian", attend, {**FORWARD, **DISTANCES, "WIDTH": 64})
    yield Job("slope_rows additive", slope, BACKWARD)
    yield Job("slope_rows additive, bfloat16", slope, {**BACKWARD, "PRECISION": "tf32"}, types=HALF)
    yield Job("slope_rows additive, one of each", slope, {**BACKWARD, **ONES, "WIDTH": 16})
    yield Job("slope_rows additive, all masks, dropout", slope, {**BACKWARD, **everything})
    relaxed = {"HAS_NOISE": True, "IS_RELAXED": True, "IS_ONE_HOT": True}
    yield Job("slope_rows additive, gumbel-softmax hard", slope, {**BACKWARD, **relaxed})
    yield Job("slope_rows dot", slope, {**BACKWARD, "KIND": 1})
    yield Job("slope_rows gaussian", slope, {**BACKWARD, **DISTANCES})
    for is_query in (True, False):
        side = "query" if is_query else "key"
        tile = {"IS_QUERY": is_query, "HAS_ROWS": True, "ROWS": 32}
        more = {"PROFILE": 0, "COLUMNS": 32}
        yield Job(f"distance_gradient {side}", distance_programs.distance_gradient, {**tile, **more}, 4)
        products = {"IS_QUERY": is_query, "ROWS": 32, "COLUMNS": 32, "WIDTH": 64}
        yield Job(f"add_products {side}", attention_programs.add_products, products, 4)
        yield Job(f"gradient_tile {side}", additive_programs.gradient_tile, {**tile, "HAS_VECTOR": is_query}, 4)
    quick = {"QUICK": 21.0, "LARGE": 0.5, "IS_MANY": True, "WIDTH": 512}
    ends = dict.fromkeys(("lowest_query", "highest_query", "lowest_key", "highest_key", "vector", "features"), "*fp32")
    yield Job("feature_tile", additive_programs.feature_tile, quick, 4, {**ends, "moves": "*fp64"})
    for is_transposed in (True, False):
        tile = {"IS_TRANSPOSED": is_transposed, "ROWS": 32}
        label = f"operand_tile{', transposed' * is_transposed}"
        yield Job(
            label, additive_programs.operand_tile, tile, 4, {"rows": "*fp32", "move": "*fp64", "operands": "*fp32"}
        )
    for has_rows in (False, True):
        tile = {"ROWS": 32, "COLUMNS": 64, "HAS_ROWS": has_rows}
        yield Job(f"score_tile{', intervals' * has_rows}", additive_programs.score_tile, tile, 4)


def compiled(job: Job, capability: int) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = job.program.arg_names
    usual = {**dict.fromkeys(FLOATS, "*fp32"), **dict.fromkeys(LONGS, "*i64"), "dense": "*u8", **job.types}
    signature = {name: "constexpr" if name in job.constants else usual.get(name, "i32") for name in names}
    is_even = {name: kind.startswith("*") or name in EVEN for name, kind in signature.items() if kind != "constexpr"}
    attributes = {(names.index(name),): [["tt.divisibility", 16]] for name, even in is_even.items() if even}
    constants = {(names.index(name),): value for name, value in job.constants.items()}
    source = ASTSource(job.program, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": job.warps})


def usage(binary: bytes) -> tuple[int, int]:
    """Registers of a thread, and bytes of memory that stand in for registers."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.cubin"
        path.write_bytes(binary)
        text = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True, check=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    if found is None:
        raise RuntimeError(f"cuobjdump said: {text}")
    return int(found[1]), int(found[2])


def main() -> int:
    """Print the table, or why there is none; 1 where a program does not compile."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    if os.environ.get("TRITON_INTERPRET") == "1" or importlib.util.find_spec("triton") is None:
        print("nothing compiled: Triton is not installed, or TRITON_INTERPRET is set")
        return 0
    print(f"{'program':42} warps registers stack shared tensor-core seconds    (sm_{given.capability})")
    failed = 0
    for job in jobs():
        if given.only not in job.label:
            continue
        start = time.monotonic()
        try:
            kernel = compiled(job, given.capability)
        except Exception as error:  # whatever the compiler raises is the finding
            failed += 1
            print(f"{job.label:42} does not compile: {str(error).splitlines()[-1]}", flush=True)
            continue
        registers, stack = usage(kernel.asm["cubin"])
        products = len(re.findall(r"mma\.sync|wgmma\.mma", kernel.asm["ptx"]))
        print(
            f"{job.label:42} {job.warps:5} {registers:9} {stack:5} {kernel.metadata.shared:6} {products:11} "
            f"{time.monotonic() - start:7.1f}",
            flush=True,
        )
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())

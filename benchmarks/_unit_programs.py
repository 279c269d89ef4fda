"""Triton programs that keep one unit of a GPU busy: those behind benchmarks/gpu_units.py. Not to be run by itself."""

import triton
import triton.language as tl

RECIPROCAL = "{ .reg .f32 t; rcp.approx.ftz.f32 t, $1; add.ftz.f32 $0, t, 0f3F800000; }"
"""With an addition, for the assembler leaves out the reciprocal of a reciprocal."""
SPECIAL = {
    "tanh.approx.f32": {"INSTRUCTION": "tanh.approx.f32 $0, $1;", "COUNT": 1},
    "rcp.approx.ftz.f32 and an add": {"INSTRUCTION": RECIPROCAL, "COUNT": 1},
    "ex2.approx.ftz.f32": {"INSTRUCTION": "ex2.approx.ftz.f32 $0, $1;", "COUNT": 1},
    "tanh.approx.f16x2 (two each)": {"INSTRUCTION": "tanh.approx.f16x2 $0, $1;", "COUNT": 2},
    "tanh.approx.bf16x2 (two each)": {"INSTRUCTION": "tanh.approx.bf16x2 $0, $1;", "COUNT": 2},
}
"""An instruction on registers of 32 bits, and the results it gives."""


@triton.jit
def repeat_special(numbers, TURNS: tl.constexpr, SIZE: tl.constexpr, INSTRUCTION: tl.constexpr, COUNT: tl.constexpr):
    place = numbers + tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(place).to(tl.uint32, bitcast=True)
    for _ in range(TURNS):
        x = tl.inline_asm_elementwise(INSTRUCTION, "=r,r", [x], dtype=tl.uint32, is_pure=True, pack=1)
    tl.store(place, x.to(tl.float32, bitcast=True))


@triton.jit
def repeat_multiply_add(numbers, TURNS: tl.constexpr, SIZE: tl.constexpr):
    place = numbers + tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(place)
    y = x * 0.5
    for _ in range(TURNS):
        x = x * y + y
    tl.store(place, x)


@triton.jit
def repeat_mixed(numbers, TURNS: tl.constexpr, SIZE: tl.constexpr, MULTIPLY_ADDS: tl.constexpr):
    place = numbers + tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    x = tl.load(place)
    y, z = x * 0.5, x + 1.0
    for _ in range(TURNS):
        z = tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=r,r", [z], dtype=tl.float32, is_pure=True, pack=1)
        z += 1.0  # counted among the multiply-adds
        for _ in tl.static_range(MULTIPLY_ADDS - 1):
            x = x * y + y
    tl.store(place, x + z)

"""Every compiled kernel refuses wrong shapes and indices before it reads or writes anything.

The list of wrong inputs is made from the kernels' own words: each axis of each array longer and shorter, an axis more,
no array where one is needed. Indices and ranges beyond the arrays are listed here. `make prove-bounds` runs all with
Numba's own checks of bounds.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from types import FrameType, ModuleType
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("numba")

from numba.core.dispatcher import Dispatcher

from heedful.attention import Dot, Location, attend
from heedful.attention.kernels.additive import numba_backward, numba_exponentials, numba_forward
from heedful.attention.kernels.additive.cpu_ops import additive_scores, prepare_exp_key
from heedful.attention.kernels.additive.numba_kernels import BLOCK, compiled
from heedful.attention.kernels.alignments import numba_kernels as alignment_kernels
from heedful.attention.kernels.alignments.cpu_ops import fast_alignment_sums
from heedful.attention.kernels.distance import compile as distance
from heedful.attention.kernels.distance import numba_kernels as distance_kernels
from heedful.attention.kernels.distance.cpu_ops import distance_attention
from heedful.attention.kernels.step import numba_kernels as step_kernels
from heedful.cpu.checked_kernel import BeforeCheckedKernel, CheckedKernel, checked, self_checked
from heedful.cpu.numba_cache import cached_njit
from heedful.errors import ShapeError, UsageError
from heedful.layers.cpu import layernorm_numba, packed_attention_numba
from heedful.layers.cpu.layernorm import DeferredBias, add_dropped, normalized, rectified
from heedful.layers.cpu.packed_attention import attend_packed
from heedful.layers.packing import Packing
from heedful.training import cross_entropy_numba
from heedful.training.cross_entropy import linear_cross_entropy

SIZES = {
    **dict(row=5, feature=16, vocabulary=11, hidden=7, slot=2 * BLOCK, slots=2 * BLOCK, width=2 * BLOCK, key=6),
    **dict(query_batch=2, key_batch=2, exp_batch=2, batch=2, group=2, head=2, position=4, depth=3, sequence=2),
    **dict(target=3, shift=6, query=5, size=3, value_size=2, value_depth=2, pitch=16, tile=64, stream=5, gain=3),
}
INDEX_ARRAYS = ("order", "query_index", "key_index", "exp_index", "gold", "starts", "lengths", "start", "stop")
NUMBERS = {
    "stop": 2, "stop_slot": BLOCK, "end": 5, "scale": 0.5, "epsilon": 1e-5, "limit": 43.0, "saturated": 10.0,
    "label_smoothing": 0.1,
}  # fmt: skip


def of_module(module: ModuleType) -> dict[str, CheckedKernel]:
    """Kernels of a module that compiles all of its own."""
    module.compile_all()
    name = module.__name__.rpartition(".")[2]
    return {f"{name} {key}": each for key, each in vars(module).items() if isinstance(each, CheckedKernel)}


def of_additive() -> dict[str, CheckedKernel]:
    found = compiled(np.dtype(np.float32))._asdict()
    return {f"additive {name}": kernel for name, kernel in found.items() if name != "block"}


def of_alignments() -> dict[str, CheckedKernel]:
    return dict(zip(("alignments forward", "alignments backward"), alignment_kernels.compiled("float32"), strict=True))


def of_steps() -> dict[str, CheckedKernel]:
    pairs = {"dot": step_kernels.by_dot(np.dtype(np.float32)), "sum": step_kernels.by_sum()}
    forward = {f"step by {name}": pair[0] for name, pair in pairs.items()}
    return forward | {f"gradients of a step by {name}": pair[1] for name, pair in pairs.items()}


def of_distances(is_exponential: bool) -> dict[str, CheckedKernel]:
    return {
        f"distance forward {is_exponential}": distance.forward("float32", is_exponential),
        f"distance backward {is_exponential}": distance.backward("float32", is_exponential),
    }


FAMILIES: Mapping[str, Callable[[], dict[str, CheckedKernel]]] = {
    "layer norm": partial(of_module, layernorm_numba),
    "packed attention": partial(of_module, packed_attention_numba),
    "additive": of_additive,
    "alignments": of_alignments,
    "steps": of_steps,
    "cross entropy": lambda: {"cross entropy": cross_entropy_numba.compiled(False)},
    "distances": partial(of_distances, False),
    "exponentials of distances": partial(of_distances, True),
}


@cache
def kernels(family: str) -> dict[str, CheckedKernel]:
    """Kernels of a family that Python calls, compiled when a test asks for them: it takes seconds."""
    return FAMILIES[family]()


def array(kernel: CheckedKernel, name: str, kind: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros, or what an array of indices holds."""
    zeros = np.zeros(shape, str(kind.dtype) if str(kind.dtype) != "bool" else np.bool_)
    if name == "lengths":
        return zeros + 2
    if name.endswith(".stop"):
        return zeros + 6
    return zeros


def right_inputs(kernel: CheckedKernel) -> list[Any]:
    """Arguments that fit, for the kernel's first signature."""
    shapes = {
        spec.name: tuple(
            axis.number if axis.number is not None else SIZES[axis.name] * axis.factor // axis.divisor
            for axis in spec.axes
        )
        for spec in kernel.arrays
    }

    def made(name: str, kind: Any) -> Any:
        if hasattr(kind, "fields"):
            parts = zip(kind.fields, kind.types, strict=True)
            return kind.instance_class(*[made(f"{name}.{field}", part) for field, part in parts])
        if hasattr(kind, "ndim"):
            return array(kernel, name, kind, shapes[name])
        if str(kind) == "none":
            return None
        if "bool" in str(kind):
            return False
        return np.dtype(str(kind)).type(NUMBERS.get(name.rpartition(".")[2], 0))

    (signature, *_) = kernel.signatures
    return [made(name, kind) for name, kind in zip(kernel.names, signature, strict=True)]


def replaced(kernel: CheckedKernel, inputs: list[Any], name: str, value: Any) -> list[Any]:
    argument, _, field = name.partition(".")
    result = list(inputs)
    index = kernel.names.index(argument)
    result[index] = result[index]._replace(**{field: value}) if field else value
    return result


def value_of(kernel: CheckedKernel, inputs: list[Any], name: str) -> Any:
    argument, _, field = name.partition(".")
    value = inputs[kernel.names.index(argument)]
    return getattr(value, field) if field else value


def wrong_shapes(kernel: CheckedKernel, inputs: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Each array with an axis longer or shorter, with one more, and without elements."""
    uses: dict[str, int] = {}
    for spec in kernel.arrays:
        for axis in spec.axes:
            uses[axis.name] = uses.get(axis.name, 0) + 1
    for spec in kernel.arrays:
        right = value_of(kernel, inputs, spec.name)
        yield f"{spec.name} with an axis more", replaced(kernel, inputs, spec.name, right[None])
        for place, axis in enumerate(spec.axes):
            if axis.number is None and uses[axis.name] == 1:
                continue  # another size is as right, as far as shapes go
            for size in (right.shape[place] + 1, right.shape[place] - 1, 4 * right.shape[place], 0):
                if size == 0 and place == 0 and spec.is_optional:
                    continue
                shape = (*right.shape[:place], size, *right.shape[place + 1 :])
                yield f"{spec.name} {list(shape)}", replaced(kernel, inputs, spec.name, np.zeros(shape, right.dtype))


BEYOND: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "additive limit_queries": (("order", -2), ("order", 7), ("order", 1 << 40)),
    "additive exponentials": (("order", -2), ("order", 7), ("first_slot", -1), ("first_slot", 1)),
    "additive scores": (
        ("order", 7), ("query_index", 2), ("query_index", -1), ("key_index", 2), ("key_index", -1), ("start", -1),
        ("stop", 5), ("stop", 1 << 40), ("exp_rounding", np.zeros((0, 0, 0), np.int16)),
        ("exp_key", np.zeros((0, 0, 0), np.float32)),
    ),
    "additive score_all": (
        ("order", 7), ("query_index", 2), ("key_index", 2), ("key_index", -1),
        ("exp_rounding", np.zeros((0, 0, 0), np.int16)),
    ),
    "additive gradients": (
        ("order", 7), ("query_index", 2), ("key_index", 2), ("exp_index", 2), ("exp_index", -1), ("start", -1),
        ("stop", 3), ("start_slot", -BLOCK), ("start_slot", 1), ("stop_slot", 3 * BLOCK),
        ("exp_rounding", np.zeros((0, 0, 0), np.int16)),
    ),
    "packed_attention_numba take": (
        ("column", 1 << 20), ("column", -1), ("first", -1), ("lengths", 5), ("lengths", -1), ("starts", 4),
        ("starts", -1), ("bias", np.zeros(5, np.float32)),
    ),
    "packed_attention_numba put": (
        ("column", 1 << 20), ("column", -1), ("first", -1), ("lengths", 5), ("lengths", -1), ("starts", 4),
        ("starts", -1), ("sums", np.zeros(7, np.float32)),
    ),
    "packed_attention_numba weigh": (("first", -1),),
    "cross entropy": (("gold", 11), ("gold", -1), ("gold", -100), ("gold", 1 << 40)),
    "distance forward False": (("row", -1), ("end", 11), ("points.start", -1), ("points.stop", 17)),
    "distance forward True": (("row", -1), ("end", 11), ("points.start", -1), ("points.stop", 17)),
    "distance backward False": (("row", -1), ("end", 11), ("points.stop", 17)),
    "distance backward True": (("row", -1), ("end", 11), ("points.stop", 17)),
}  # fmt: skip
"""Kernels with indices and ranges, and values beyond the arrays: of a number, or of one index of an array."""


def beyond(name: str, kernel: CheckedKernel, inputs: list[Any]) -> Iterator[tuple[str, list[Any]]]:
    for argument, value in BEYOND.get(name, ()):
        right = value_of(kernel, inputs, argument)
        if isinstance(right, np.ndarray) and not isinstance(value, np.ndarray):
            changed = right.copy()
            changed.reshape(-1)[-1] = value
            yield f"{argument} with {value}", replaced(kernel, inputs, argument, changed)
        else:
            told = list(value.shape) if isinstance(value, np.ndarray) else value
            yield f"{argument} {told}", replaced(kernel, inputs, argument, value)


def taken(kernel: CheckedKernel, cases: Iterator[tuple[str, list[Any]]]) -> list[str]:
    """Wrong inputs that a kernel does not refuse."""
    found: list[str] = []
    for what, inputs in cases:
        try:
            kernel(*inputs)
        except ValueError:
            continue
        found.append(what)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_inputs_are_refused(family: str):
    for name, kernel in kernels(family).items():
        kernel(*right_inputs(kernel))
        inputs = right_inputs(kernel)
        cases = [*wrong_shapes(kernel, inputs), *beyond(name, kernel, inputs)]
        assert len(cases) >= len(kernel.arrays), name
        assert taken(kernel, iter(cases)) == [], name


@pytest.mark.parametrize("family", FAMILIES)
def test_every_array_has_a_shape(family: str):
    for name, kernel in kernels(family).items():
        (signature, *_) = kernel.signatures
        arrays: set[str] = set()
        for argument, kind in zip(kernel.names, signature, strict=True):
            parts = zip(getattr(kind, "fields", ()), getattr(kind, "types", ()), strict=True)
            arrays |= {f"{argument}.{field}" for field, part in parts if hasattr(part, "ndim")}
            arrays |= {argument} if hasattr(kind, "ndim") else set()
        assert arrays == {spec.name for spec in kernel.arrays}, name
        indices = {each for each in arrays if each.rpartition(".")[2] in INDEX_ARRAYS}
        listed = {argument for argument, _ in BEYOND.get(name, ())} | {"points.start"}
        assert indices <= listed or "weigh" in name, name


MODULES = (
    layernorm_numba,
    packed_attention_numba,
    cross_entropy_numba,
    numba_backward,
    numba_exponentials,
    numba_forward,
    distance_kernels,
    alignment_kernels,
    step_kernels,
)


def test_no_kernel_goes_unchecked():
    """A kernel that is kept on disk is one that Python calls, but for one that other kernels call."""
    known = {kernel._kernel.py_func for family in FAMILIES for kernel in kernels(family).values()}
    for module in MODULES:
        for name, each in vars(module).items():
            is_kept = isinstance(each, Dispatcher) and each.targetoptions.get("nogil")
            if is_kept and inspect.getmodule(each.py_func) is module:
                assert each.py_func in known or name == "extremes", f"{module.__name__}.{name}"


def test_a_kernel_with_a_wrong_description_is_noticed():
    @cached_njit()
    def add(numbers: np.ndarray, others: np.ndarray) -> None:
        for i in range(min(numbers.shape[0], others.shape[0])):
            numbers[i] += others[i]

    right, wrong = (np.zeros(3) for _ in range(2))
    good, bad = (checked(numbers="row", others=words)(add) for words in ("row", "other"))
    good(right, wrong)
    bad(right, wrong)
    assert taken(good, wrong_shapes(good, [right, wrong])) == []
    cases = [("longer", [right, np.zeros(4)])]
    assert taken(good, iter(cases)) == []
    assert taken(bad, iter(cases)) == ["longer"]


def test_a_kernel_that_forgets_a_shape_is_noticed():
    @cached_njit()
    def add(numbers: np.ndarray, others: np.ndarray) -> bool:
        if numbers.shape != others.shape:
            return False
        numbers += others
        return True

    @cached_njit()
    def add_some(numbers: np.ndarray, others: np.ndarray) -> bool:
        numbers[: len(others)] += others[: len(numbers)]
        return True

    right = [np.zeros(3), np.zeros(3)]
    good, bad = (self_checked(numbers="row", others="row")(kernel) for kernel in (add, add_some))
    good(*right)
    bad(*right)
    assert taken(good, wrong_shapes(good, right)) == []
    cases = [("longer", [right[0], np.zeros(4)])]
    assert taken(bad, iter(cases)) == ["longer"]


def test_types_that_a_kernel_cannot_compute_with_are_named():
    """A kernel of its own, because Numba takes seconds for each of the others to find out."""

    @cached_njit()
    def double(numbers: np.ndarray) -> None:
        for i in range(numbers.shape[0]):
            numbers[i] = numbers[i] * 2.0

    kernel = checked(numbers="row")(double)
    with pytest.raises(ShapeError, match=r"kernel double: numbers of types that it is not made for: numbers \|S4"):
        kernel(np.zeros(3, "S4"))
    kernel(np.zeros(3))


def test_shapes_that_are_known_are_not_compared_again(monkeypatch: pytest.MonkeyPatch):
    """A comparison takes ten times as long as a whole check may."""

    @cached_njit()
    def double(numbers: np.ndarray) -> bool:
        numbers *= 2.0
        return True

    compared: list[tuple[tuple[int, ...], ...]] = []
    compare = CheckedKernel._compare

    def counted(kernel: CheckedKernel, shapes: tuple[tuple[int, ...], ...]) -> dict[str, int]:
        compared.append(shapes)
        return compare(kernel, shapes)

    monkeypatch.setattr(CheckedKernel, "_compare", counted)
    before, within = checked(numbers="row")(double), self_checked(numbers="row")(double)
    for size in (2, 2, 3, 2, 3):
        before(np.zeros(size))
        within(np.zeros(size))
    assert compared == [((2,),), ((3,),)]


def test_calls_of_two_threads_check_their_own_sizes():
    """A call of another thread with other shapes, between any two lines of a call."""

    @cached_njit()
    def pick(numbers: np.ndarray, index: int) -> float:
        return numbers[index]

    def is_right(arguments: tuple[Any, ...], sizes: Mapping[str, int]) -> bool:
        return 0 <= arguments[1] < sizes["row"]

    short, long = np.zeros(2), np.zeros(9)
    assert pick(long, 8) == 0.0
    for number in range(12):
        kernel = checked(is_right, numbers="row")(pick)
        kernel(short, 0)
        lines: list[object] = []

        def interrupt(
            frame: FrameType, event: str, _: object, lines: list[object] = lines, number: int = number
        ) -> Any:
            if frame.f_code is BeforeCheckedKernel.__call__.__code__ and event == "line":
                lines.append(frame)
                if len(lines) == number:
                    sys.settrace(None)
                    kernel(short, 0)  # noqa: B023
                    sys.settrace(interrupt)
            return interrupt

        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            kernel(long, 8)
        finally:
            sys.settrace(before)
        assert number <= len(lines) or number > 6
        kernel(long, 8)
        with pytest.raises(ValueError, match="index"):
            kernel(short, 8)


def _normalized(weight: torch.Tensor, bias: torch.Tensor, vectors: torch.Tensor, is_mixed: bool) -> torch.Tensor:
    norm = torch.nn.LayerNorm(16)
    norm.weight, norm.bias = (torch.nn.Parameter(each, requires_grad=False) for each in (weight, bias))
    with torch.autocast("cpu", torch.bfloat16, enabled=is_mixed):
        return normalized(norm, vectors).float()


def _rectified(vectors: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    layer = torch.nn.Linear(16, 8)
    layer.weight, layer.bias = (torch.nn.Parameter(each, requires_grad=False) for each in (weight, bias))
    return rectified(vectors, layer)


def _added(residual: torch.Tensor, vectors: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return add_dropped(residual, DeferredBias(vectors, bias), 0.0, True)


def _drawn(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(dtype)


PACKING = Packing.of(torch.tensor([3, 2]), 4)
NARROW = torch.bfloat16
NORM = {"weight": torch.ones(16), "bias": torch.zeros(16), "vectors": _drawn(3, 16)}
VECTORS = {"query": _drawn(2, 3, 8), "key": _drawn(2, 5, 8), "value": _drawn(2, 5, 8)}
LOCATION = Location(8, 8, 10)
OPERATIONS: Mapping[str, tuple[Callable[..., Any], dict[str, torch.Tensor]]] = {
    "linear_cross_entropy": (
        lambda **inputs: linear_cross_entropy(**inputs).total,
        {
            "features": _drawn(3, 4),
            "weight": _drawn(7, 4),
            "bias": _drawn(7),
            "gold": torch.tensor([0, 1, 2]),
            "row_weights": torch.ones(3),
        },
    ),
    "attend_packed": (
        lambda first, bias: attend_packed(first, None, bias, PACKING, PACKING, 2)[:5],
        {"first": _drawn(PACKING.num_rows, 48, dtype=NARROW), "bias": _drawn(48)},
    ),
    "attend_packed to others": (
        lambda first, second, bias: attend_packed(first, second, bias, PACKING, PACKING, 2)[:5],
        {
            "first": _drawn(PACKING.num_rows, 16, dtype=NARROW),
            "second": _drawn(PACKING.num_rows, 32, dtype=NARROW),
            "bias": _drawn(48),
        },
    ),
    "normalized": (partial(_normalized, is_mixed=True), NORM),
    "normalized without autocast": (partial(_normalized, is_mixed=False), NORM),
    "rectified": (_rectified, {"vectors": _drawn(3, 16, dtype=NARROW), "weight": _drawn(8, 16), "bias": _drawn(8)}),
    "add_dropped": (
        _added,
        {"residual": _drawn(3, 16), "vectors": _drawn(3, 16, dtype=NARROW), "bias": _drawn(16)},
    ),
    "prepare_exp_key": (lambda key: prepare_exp_key(key).exponential, {"key": _drawn(2, 5, 8)}),
    "additive_scores": (
        additive_scores,
        {"query": _drawn(2, 1, 8), "key": _drawn(2, 5, 8), "vector": _drawn(8)},
    ),
    "distance_attention": (
        lambda query, key, value, start, stop: distance_attention(query, key, value, 1.0, "gaussian", 1.0, start, stop)[
            0
        ],
        {**VECTORS, "start": torch.zeros(2, 1, dtype=torch.int64), "stop": torch.full((2, 1), 5)},
    ),
    "sums of alignments": (
        lambda emissions, transitions: fast_alignment_sums(emissions, transitions).log_probs,
        {"emissions": _drawn(2, 3, 4), "transitions": _drawn(2, 3, 4, 4)},
    ),
    "attend": (lambda query, key, value: attend(query, key, value, score=Dot(8, 8)).context, VECTORS),
    "attend by position": (lambda query, key, value: attend(query, key, value, score=LOCATION).context, VECTORS),
}
DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.uint8, torch.bool, torch.complex64),
)


def wrong_operands(inputs: dict[str, torch.Tensor]) -> Iterator[dict[str, torch.Tensor]]:
    """Each tensor in each other type, and with each axis longer, shorter, empty, or one more or less."""
    for name, right in inputs.items():
        for dtype in DTYPES:
            if dtype != right.dtype:
                yield {**inputs, name: right.to(dtype)}
        shapes = [
            (*right.shape[:place], size, *right.shape[place + 1 :])
            for place, former in enumerate(right.shape)
            for size in (former + 1, former - 1, 0)
        ]
        for shape in (*shapes, (1, *right.shape), right.shape[1:]):
            yield {**inputs, name: torch.zeros(shape, dtype=right.dtype)}
    for dtype in DTYPES:
        yield {name: right.to(dtype) for name, right in inputs.items()}


def _shown(inputs: dict[str, torch.Tensor]) -> str:
    return ", ".join(f"{name} {each.dtype} {list(each.shape)}" for name, each in inputs.items())


@pytest.mark.wrong_shapes
@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_take_their_operands_or_refuse_them(name: str):
    """What is taken in another type gives what it gives in the type that is meant."""
    operation, inputs = OPERATIONS[name]
    operation(**inputs)
    faults: list[str] = []
    num_refused = 0
    for others in wrong_operands(inputs):
        try:
            result = operation(**others)
        except ValueError as error:
            num_refused += 1
            words = str(error)
            if not isinstance(error, UsageError) or "\n" in words or not re.search(r"\[|float|complex|int|bool", words):
                faults.append(f"{_shown(others)}: {error}")
        except Exception as error:
            faults.append(f"{_shown(others)}: {type(error).__name__} {error}")
        else:
            if all(each.shape == inputs[key].shape for key, each in others.items()):
                meant = operation(**{key: each.to(inputs[key].dtype) for key, each in others.items()})
                if not torch.allclose(result.float(), meant.float(), 0.05, 0.05, equal_nan=True):
                    faults.append(f"{_shown(others)}: other numbers")
    assert faults == []
    assert num_refused > 2 * len(inputs)


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0, 5.0, float("nan")])
def test_shares_beyond_their_range_are_refused(label_smoothing: float):
    _, inputs = OPERATIONS["linear_cross_entropy"]
    with pytest.raises(UsageError, match=r"label_smoothing must be in \[0, 1\), got"):
        linear_cross_entropy(**inputs, label_smoothing=label_smoothing)


def _fused(norm_size: int) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        normalized(torch.nn.LayerNorm(norm_size), torch.zeros(3, 16))


def test_a_norm_without_weight_or_bias_is_its_own():
    for settings in ({"elementwise_affine": False}, {"bias": False}):
        norm, vectors = torch.nn.LayerNorm(16, **settings), torch.randn(3, 16)
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.equal(normalized(norm, vectors), norm(vectors))


def _packed(num_rows: int, num_features: int = 48, num_heads: int = 2) -> None:
    packing = Packing.of(torch.tensor([3, 5]), 5)
    attend_packed(torch.zeros(num_rows, num_features, dtype=torch.bfloat16), None, None, packing, packing, num_heads)


def _loss(gold: list[Any], dtype: torch.dtype = torch.float32, **changes: torch.Tensor) -> None:
    inputs = {
        "features": torch.zeros(3, 4, dtype=dtype),
        "weight": torch.zeros(7, 4, dtype=dtype),
        "bias": None,
    } | changes
    linear_cross_entropy(**inputs, gold=torch.tensor(gold))


def _prepared(num_features: int) -> None:
    exp_key = prepare_exp_key(torch.zeros(2, 5, num_features))
    additive_scores(torch.zeros(2, 1, 8), torch.zeros(2, 5, 8), torch.zeros(8), exp_key)


@pytest.mark.wrong_shapes
@pytest.mark.parametrize(
    "call",
    [
        *[
            partial(_loss, gold, dtype)
            for gold in ([0, 7, 1], [0, 1, -100])
            for dtype in (torch.float32, torch.float64)
        ],
        partial(_loss, [0, 1, 2], bias=torch.zeros(9)),
        partial(_loss, [0, 1]),
        partial(_loss, [0, 1, 2], weight=torch.zeros(7, 5)),
        partial(_loss, [0, 1, 2], row_weights=torch.zeros(4)),
        partial(_fused, 8),
        partial(_packed, 7),
        # Heads of other sizes would leave some of the context as it was in memory.
        *[partial(_packed, 64, *sizes) for sizes in ((48, 0), (48, -1), (48, 5), (50, 2), (0, 1), (3, 2))],
        partial(_loss, [0.0, 1.0, 2.0]),
        partial(_loss, [True, False, True]),
        partial(_loss, [0, 0, 0], weight=torch.zeros(0, 4)),
        *[partial(_prepared, size) for size in (4, 16, 200)],
    ],
)
def test_operations_refuse_what_their_kernels_refuse(call: Callable[[], None]):
    with pytest.raises(ValueError, match=r"\d") as caught:
        call()
    assert "\n" not in str(caught.value)

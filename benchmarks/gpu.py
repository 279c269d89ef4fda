"""All that is to be fast on a GPU, beside what eager PyTorch and Hugging Face need, and beside the device's floor.

    python benchmarks/gpu.py [--repeats N] [--only grid,additive,memory,training,decoding] [--seconds 300]
        [--pairs train.de train.en ...] [--json new.json] [--compare old.json]

One line for each target: our time, its floor, the share of the floor, the rival's time, and the target. Floors of
additive attention, for each query * key * hidden: our quick form takes 3.5 operations of the arithmetic units
(128 a cycle and multiprocessor from compute capability 8.6 on and on 9.0, 64 on 8.0) and half a reciprocal of the
special units (16 a cycle); features take `rank` multiply-adds of the tensor cores at the rate of a matrix product
measured here. That of training is the model's own products on real tokens at that rate. Times are medians of what CUDA
events measure, after warming up, of random inputs. `--only units` confirms the rates that floors are made of
(benchmarks/gpu_units.py). `--json` keeps the rows, `--compare` puts them beside those of an earlier run, and no section
begins after `--seconds`. `--tiny` runs all of it on a CPU in small shapes, which times nothing worth knowing: it shows
that the rows run.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from heedful.attention.dispatch import attend
from heedful.attention.interface import Score
from heedful.attention.lowered import LoweredAdditive

SHAPE: Final = (32, 256, 256, 512)
"""Batch, queries, keys, hidden of the targets."""
SECTIONS: Final = ("units", "grid", "additive", "memory", "training", "decoding", "pairs")
_LENGTHS: Final = ((1, 15), (1, 20), (1, 60), (20, 20), (60, 60))
GRID: Final = (
    *((batch, *lengths, hidden) for batch in (5, 32, 80) for lengths in _LENGTHS for hidden in (256, 512)),
    *((8, 256, 256, hidden) for hidden in (64, 256, 512)),
    *((32, 128, 128, hidden) for hidden in (64, 256, 512)),
    *((1, 1024, 1024, hidden) for hidden in (64, 512)),
    *((2, 1, 4096, hidden) for hidden in (64, 512)),
)
"""Shapes of calls, batch, queries, keys, hidden: steps of decoders, sentences, documents."""


class Units(NamedTuple):
    """Rates of a device's units, in results a second."""

    arithmetic: float
    """Operations of float32 outside matrix products."""
    special: float
    matrices: float
    """Operations of bfloat16 matrix products, measured; a multiply-add is two."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    target: str
    ours: float
    """In the unit."""
    unit: str = "us"
    floor: float | None = None
    rival: float | None = None
    remark: str = ""

    def __str__(self) -> str:
        floor = "-" if self.floor is None else f"{self.floor:.1f}"
        share = "-" if not self.floor or not self.ours else f"{self.floor / self.ours:.0%}"
        rival = "-" if self.rival is None else f"{self.rival:.1f}"
        return (
            f"{self.what:46} {self.ours:10.1f} {self.unit:5} {floor:>9} {share:>6} {rival:>10}  "
            f"{self.target}; {self.remark}".rstrip("; ")
        )


class Setting(NamedTuple):
    """Device, sizes and number of repetitions."""

    device: str
    repeats: int
    is_tiny: bool

    def seconds(self, work: Callable[[], object]) -> float:
        """Median of what events measure on a GPU, of the clock elsewhere."""
        times: list[float] = []
        for turn in range(self.repeats + 3):
            if self.device == "cuda":
                start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                work()
                stop.record()
                torch.cuda.synchronize()
                elapsed = start.elapsed_time(stop) / 1e3
            else:
                begun = time.perf_counter()
                work()
                elapsed = time.perf_counter() - begun
            times += [elapsed] if turn >= 3 or self.is_tiny else []
        return statistics.median(times)

    def microseconds(self, work: Callable[[], object]) -> float:
        return 1e6 * self.seconds(work)


class Ready(Score):
    """An additive score of queries and keys that are projected already."""

    def __init__(self, vector: Tensor) -> None:
        super().__init__(len(vector), len(vector))
        self.vector = nn.Parameter(vector)

    def prepare(self, key: Tensor) -> Any:
        from heedful.attention.interface import PreparedKey

        return PreparedKey(key)

    def lower(self, query: Tensor, prepared: Any, inverse_temperature: Tensor | float = 1.0) -> LoweredAdditive:
        return LoweredAdditive(query, prepared.key, self.vector * inverse_temperature)


def formula(query: Tensor, key: Tensor, vector: Tensor) -> Tensor:
    return torch.tanh(query[:, :, None] + key[:, None]) @ vector


def eager(query: Tensor, key: Tensor, value: Tensor, vector: Tensor) -> Tensor:
    return torch.softmax(formula(query, key, vector), dim=-1) @ value


def floor_seconds(num_elements: float, operations: float, special: float, units: Units) -> float:
    """The slower of the two kinds of units, each never idle."""
    return num_elements * max(operations / units.arithmetic, special / units.special)


def units_of(setting: Setting) -> Units:
    size = 64 if setting.is_tiny else 8192
    left, right = (torch.randn(size, size, device=setting.device, dtype=torch.bfloat16) for _ in range(2))
    matrices = 2.0 * size**3 / setting.seconds(lambda: left @ right)
    if setting.device != "cuda":
        return Units(1e11, 1e10, matrices)
    device = torch.cuda.get_device_properties(0)
    hertz = device.multi_processor_count * (1e3 * getattr(device, "clock_rate", 0) or 1.98e9)
    return Units(hertz * (64 if (device.major, device.minor) == (8, 0) else 128), hertz * 16, matrices)


def draw(setting: Setting, shape: tuple[int, int, int, int], dtype: torch.dtype) -> tuple[list[Tensor], Ready]:
    """Query, key, value, and a score: a range that trained models have."""
    batch, num_queries, num_keys, hidden = shape
    sizes = (num_queries, num_keys, num_keys)
    parts = [(0.5 * torch.randn(batch, size, hidden, device=setting.device)).to(dtype) for size in sizes]
    vector = (torch.rand(hidden, device=setting.device) * 2.0 - 1.0) * (3.0 / hidden) ** 0.5
    return parts, Ready(vector.to(dtype))


def additive_rows(setting: Setting, units: Units) -> Iterator[Row]:
    from heedful.attention.kernels.additive.triton_ops import additive_scores

    shape = (1, 33, 40, 32) if setting.is_tiny else SHAPE
    elements = float(torch.tensor(shape).prod())
    (query, key, value), score = draw(setting, shape, torch.float32)
    vector = score.vector.detach()
    with torch.no_grad():
        exact = formula(query[:1].double(), key[:1].double(), vector.double())
        errors = [float((run(query[:1], key[:1], vector) - exact).abs().max()) for run in (additive_scores, formula)]
        for name, forms in (
            ("quick form", 3.5),
            ("careful form", 6.0),
            ("libdevice tanh", 14.0),
            ("tanh.approx", 2.0),
            ("folded, g = 3", 8 / 3),
        ):
            special = {"quick form": 0.5, "careful form": 0.5, "libdevice tanh": 2.0, "tanh.approx": 1.0}.get(
                name, 1 / 3
            )
            print(f"floor of {name}: {1e6 * floor_seconds(elements, forms, special, units):.0f} us")
        ours = setting.microseconds(lambda: additive_scores(query, key, vector))
        theirs = setting.microseconds(lambda: formula(query, key, vector))
        floor = 1e6 * floor_seconds(elements, 3.5, 0.5, units)
        remark = f"error {errors[0]:.1e}, eager {errors[1]:.1e}"
        yield Row("additive scores, forward, fp32", "<= 160 us, error <= 2x", ours, "us", floor, theirs, remark)
    products = 2.0 * elements / units.arithmetic  # of fp32 multiply-adds outside tensor cores: context
    run = partial(attend, score=score, kernel="fused_triton")
    with torch.no_grad():
        ours = setting.microseconds(lambda: run(query, key, value))
        theirs = setting.microseconds(lambda: eager(query, key, value, vector))
    yield Row("additive attention, forward, fp32", "with context", ours, "us", floor + 5e5 * products, theirs)

    ours = setting.microseconds(lambda: both(lambda *parts: run(*parts).context, query, key, value))
    theirs = setting.microseconds(lambda: both(eager, query, key, value, vector))
    # Scores twice, and what reaches queries and keys, each six and a half operations and half a reciprocal.
    floor = 1e6 * floor_seconds(elements, 2 * 3.5 + 2 * 6.5, 4 * 0.5, units)
    yield Row("additive attention, both ways, fp32", "<= 600 us", ours, "us", floor, theirs)


def grid_rows(setting: Setting) -> Iterator[Row]:
    """Additive calls of many shapes, as `attend` chooses, beside plain operations and their compiled form."""
    compiled = eager if setting.is_tiny else torch.compile(eager, dynamic=True)
    for shape in GRID[:2] if setting.is_tiny else GRID:
        for dtype in (torch.float32, torch.bfloat16):
            (query, key, value), score = draw(setting, shape, dtype)
            vector = score.vector

            def ours(*parts: Tensor, score: Ready = score) -> Tensor:
                return attend(*parts, score=score).context

            def plain(*parts: Tensor, vector: Tensor = vector) -> Tensor:
                return eager(*parts, vector)

            def other(*parts: Tensor, vector: Tensor = vector) -> Tensor:
                return compiled(*parts, vector)

            for ways in ("forward", "both ways"):

                def seconds(run: Callable[..., Tensor], ways: str = ways, parts: Any = (query, key, value)) -> float:
                    if ways == "forward":
                        with torch.no_grad():
                            return setting.microseconds(lambda: run(*parts))
                    return setting.microseconds(lambda: both(run, *parts))

                found = [seconds(run) for run in (ours, plain, other)]
                what = f"attend {' x '.join(map(str, shape))}, {str(dtype)[6:]}, {ways}"
                ratios = f"{found[1] / found[0]:.2f}x plain, {found[2] / found[0]:.2f}x compiled"
                yield Row(what, ">= 0.95x", found[0], "us", None, found[1], ratios)


def both(forward: Callable[..., Tensor], *given: Tensor) -> None:
    """Compute a result and its gradients."""
    leaves = [part.detach().requires_grad_() for part in given]
    result = forward(*leaves)
    torch.autograd.grad(result, leaves, torch.ones_like(result))


def memory_rows(setting: Setting) -> Iterator[Row]:
    length = 64 if setting.is_tiny else 8192
    hidden = 32 if setting.is_tiny else 512
    (query, key, value), score = draw(setting, (1, length, length, hidden), torch.float32)
    leaves = [part.requires_grad_() for part in (query, key, value)]
    if setting.device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    context = attend(*leaves, score=score, kernel="fused_triton").context
    torch.autograd.grad(context, leaves, torch.ones_like(context))
    peak = torch.cuda.max_memory_allocated() if setting.device == "cuda" else 0
    least = 4 * 8 * length * hidden  # three inputs, three gradients, output and its gradient
    what = f"memory, n = m = {length}, h = {hidden}, both ways"
    yield Row(what, "<= 110 % of inputs, outputs, gradients", peak / 2**20, "MiB", least / 2**20)


def pairs_of_ids(setting: Setting, num_tokens: int, length: int, vocabulary: int) -> list[Tensor]:
    """Source, its lengths, target in, target out: real lengths between half and all of the longest."""
    rows = max(1, num_tokens // length)
    generator = torch.Generator().manual_seed(0)
    lengths = torch.randint(length // 2, length + 1, (rows,), generator=generator)
    lengths[0] = length
    real = torch.arange(length) < lengths[:, None]
    ids = [torch.randint(4, vocabulary, (rows, length), generator=generator) * real for _ in range(3)]
    return [part.to(setting.device) for part in (ids[0], lengths, ids[1], ids[2])]


def train_seconds(setting: Setting, model: nn.Module, loss: Callable[[], Tensor]) -> float:
    """One step: forward, backward, AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=setting.device == "cuda")

    def step() -> None:
        with torch.autocast(setting.device, torch.bfloat16):
            found = loss()
        found.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return setting.seconds(step)


def our_seconds(setting: Setting, model: nn.Module, batch: list[Tensor]) -> float:
    """One step of `heedful train`: recorded where the device can, with copies of the batch, clipping and AdamW."""
    from heedful.data.batching import PairBatch
    from heedful.training.config import TrainingConfig
    from heedful.training.distributed import SingleProcess
    from heedful.training.pair_step import PairStep
    from heedful.training.train_state import TrainState

    source, lengths, target_in, target_out = (part.cpu().numpy() for part in batch)
    pairs = PairBatch(source, lengths, target_in, target_out, (target_out > 0).sum(axis=1))
    config = TrainingConfig(batch_tokens=64, validate_every=1, precision="bfloat16", average=0.0)
    state = TrainState(PairStep(model, 0.1).to(setting.device), config, SingleProcess(), warn=print)
    numbers = iter(range(1, 1 << 30))

    def step() -> None:
        state.differentiate([pairs], pairs.num_units)
        state.update(next(numbers), 1e-4)

    return setting.seconds(step)


def transformer_products(lengths: Tensor, num_target: int, size: int, hidden: int, layers: int, words: int) -> float:
    """Operations of the model's own products on real tokens, forward and both backward products."""
    source = int(lengths.sum())
    encoder = layers * (4 * size * size + 2 * size * hidden)
    decoder = layers * (6 * size * size + 2 * size * hidden)
    return 3 * 2.0 * (source * (encoder + layers * 2 * size * size) + num_target * (decoder + size * words))


def marian(size: int, layers: int, hidden: int, vocabulary: int) -> Any:
    from transformers import MarianConfig, MarianMTModel

    heads = dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 8)
    depths = {"encoder_layers": layers, "decoder_layers": layers, "encoder_ffn_dim": hidden, "decoder_ffn_dim": hidden}
    config = MarianConfig(
        vocab_size=vocabulary, d_model=size, pad_token_id=0, eos_token_id=3, decoder_start_token_id=0,
        forced_eos_token_id=None, max_position_embeddings=512, **heads, **depths,
    )  # fmt: skip
    return MarianMTModel(config)


class Plain(nn.Module):
    """nn.Transformer, padding masks, logits of everything, cross_entropy."""

    def __init__(self, vocabulary: int, size: int, layers: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, size)
        self.inner = nn.Transformer(size, 8, layers, layers, hidden, 0.1, batch_first=True)

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        length = target_in.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=source.device).triu(1)
        features = self.inner(
            self.embedding(source), self.embedding(target_in), tgt_mask=future, tgt_is_causal=True,
            src_key_padding_mask=source == 0, memory_key_padding_mask=source == 0,
        )  # fmt: skip
        logits = nn.functional.linear(features, self.embedding.weight)
        return nn.functional.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=0)


def training_rows(setting: Setting, units: Units) -> Iterator[Row]:
    from heedful.models.rnnsearch import PRESETS as RECURRENT
    from heedful.models.transformer import PRESETS
    from heedful.training.pair_step import PairStep

    words = 100 if setting.is_tiny else 8_000
    for what, length, tokens in (("Multi30k", 24, 16_384), ("4.5 M pairs", 60, 32_768)):
        batch = pairs_of_ids(setting, 96 if setting.is_tiny else tokens, length, words)
        source, lengths, target_in, target_out = batch
        num_target = int((target_out > 0).sum())
        preset = PRESETS["tiny" if setting.is_tiny else "base"]
        size, layers, hidden = preset.model_size, preset.num_encoder_layers, preset.feedforward_size
        ours = our_seconds(setting, preset.build(words, words, True), batch)
        floor = transformer_products(lengths, num_target, size, hidden, layers, words) / units.matrices
        rivals = {}
        plain = Plain(words, size, layers, hidden).to(setting.device)
        compiled = plain if setting.is_tiny else torch.compile(plain)
        rivals["compiled nn.Transformer"] = (plain, lambda m=compiled, b=batch: m(b[0], b[2], b[3]))
        if importlib.util.find_spec("transformers"):
            other = marian(size, layers, hidden, words).to(setting.device)
            labels = target_out.masked_fill(target_out == 0, -100)
            given = {"input_ids": source, "attention_mask": source > 0, "decoder_input_ids": target_in}
            rivals["Marian"] = (other, lambda m=other, g=given, t=labels: m(**g, labels=t).loss)
        for name, (rival, loss) in rivals.items():
            theirs = train_seconds(setting, rival, loss)
            remark = f"against {name}: {theirs / ours:.2f}x, {num_target / ours:.0f} target tokens/s"
            what_row = f"training, {preset.num_encoder_layers}+{layers} layers, lengths of {what}"
            yield Row(what_row, ">= 45 % of floor, 1.5x", 1e3 * ours, "ms", 1e3 * floor, 1e3 * theirs, remark)
    batch = pairs_of_ids(setting, 48 if setting.is_tiny else 8_192, 24, words)
    recurrent = RECURRENT["rnnsearch"] if not setting.is_tiny else next(iter(RECURRENT.values()))
    model = PairStep(recurrent.build(words, words, False), 0.1).to(setting.device)
    ours = our_seconds(setting, model.model, batch)
    with patch("heedful.attention.dispatch.KERNELS", plain_kernels()):
        theirs = train_seconds(setting, model, lambda: model(*batch).total / 1e3)
    remark = f"{theirs / ours:.2f}x"
    yield Row(
        "training, RNNsearch", "<= 30 ms, 3x launched plain operations", 1e3 * ours, "ms", None, 1e3 * theirs, remark
    )


def plain_kernels() -> tuple[Any, ...]:
    from heedful.attention.kernels.plain import PlainScores
    from heedful.attention.tiled_attention import Tiled

    return (Tiled(PlainScores()),)


def decoding_rows(setting: Setting) -> Iterator[Row]:
    from heedful.engines.engine import decode_sorted
    from heedful.models.engine import torch_backend
    from heedful.models.transformer import PRESETS
    from heedful.search.config import SearchConfig, with_outputs

    words = 100 if setting.is_tiny else 8_000
    rows, length = (2, 8) if setting.is_tiny else (1_014, 24)
    setting = setting._replace(repeats=min(5, setting.repeats))
    preset = PRESETS["tiny" if setting.is_tiny else "base"]
    model = preset.build(words, words, True).to(setting.device).eval()
    source = torch.randint(4, words, (rows, length))
    source[:, -1] = 3
    sources = [each.numpy() for each in source]
    for beam in (1, 5):
        config = with_outputs(SearchConfig(), beam)
        backend = torch_backend(model, length)
        ours = setting.seconds(lambda c=config, b=backend: decode_sorted(b, sources, c, batch_tokens=1 << 20))
        theirs = None
        if importlib.util.find_spec("transformers"):
            other = marian(preset.model_size, preset.num_encoder_layers, preset.feedforward_size, words)
            other = other.to(setting.device).eval()
            ids = source.to(setting.device)
            generate = partial(
                other.generate, ids, attention_mask=torch.ones_like(ids), num_beams=beam, do_sample=False
            )
            theirs = setting.seconds(lambda g=generate: g(max_new_tokens=length))
        remark = "" if theirs is None else f"{theirs / ours:.2f}x"
        rival = None if theirs is None else 1e3 * theirs
        yield Row(f"decoding, beam {beam}, {rows} sentences", "4x generate", 1e3 * ours, "ms", None, rival, remark)


def pair_rows(setting: Setting, files: list[str]) -> Iterator[Row]:
    """Train on given files to a given score: the command a user would run, from process start."""
    if len(files) != 6:
        print("pairs: give --pairs train.de train.en dev.de dev.en test.de test.en for the wall time to 38 BLEU")
        return
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.model")
        command = [sys.executable, "-m", "heedful", "train", *files[:2], "--dev", *files[2:4], "--test", *files[4:6]]
        begun = time.perf_counter()
        subprocess.run(
            [*command, "--preset", "base", "--minutes", "3", "--device", setting.device, "--out", out], check=True
        )
        yield Row(
            "heedful train, three minutes; see its BLEU", "38 BLEU in 180 s", time.perf_counter() - begun, "s", 180.0
        )


def missing(section: str) -> str:
    """Why a section has no rows here."""
    if section not in ("additive", "memory", "units"):
        return ""
    if importlib.util.find_spec("triton") is None:
        return "Triton is not installed (pip install 'heedful[gpu]')"
    is_readable = torch.cuda.is_available() or np.lib.NumpyVersion(np.__version__) < "2.4.0"
    return "" if is_readable else "Triton's interpreter does not know NumPy 2.4"


def rows(name: str, setting: Setting, units: Units, files: list[str]) -> Iterator[Row]:
    if name == "grid":
        yield from grid_rows(setting)
    elif name == "additive":
        yield from additive_rows(setting, units)
    elif name == "memory":
        yield from memory_rows(setting)
    elif name == "training":
        yield from training_rows(setting, units)
    elif name == "decoding":
        yield from decoding_rows(setting)
    elif name == "pairs":
        yield from pair_rows(setting, files)
    elif setting.device == "cuda":
        import gpu_units

        gpu_units.print_rates(setting.repeats)


def main() -> None:
    """Print the table, or why there is none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--pairs", nargs="*", default=[])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--seconds", type=float, default=300.0, help="no section begins later than this")
    parser.add_argument("--json", type=Path, default=None, help="file for the rows")
    parser.add_argument("--compare", type=Path, default=None, help="rows of an earlier run")
    given = parser.parse_args()
    old = earlier_rows(given.compare) if given.compare else {}
    begun, found, failed = time.monotonic(), list[Row](), list[str]()
    setting = Setting("cuda" if torch.cuda.is_available() else "cpu", 1 if given.tiny else given.repeats, given.tiny)
    if setting.device == "cpu" and not given.tiny:
        print("nothing timed: no CUDA device")
        return
    if setting.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported
    torch.manual_seed(0)
    units = units_of(setting)
    name = torch.cuda.get_device_name(0) if setting.device == "cuda" else "CPU: these times mean nothing"
    print(f"{name}, PyTorch {torch.__version__}, bfloat16 products {units.matrices / 1e12:.1f} T operations/s")
    print(f"{'what':46} {'ours':>10} unit  {'floor':>9} {'share':>6} {'rival':>10}  target; remark")
    for section in given.only.split(","):
        if time.monotonic() - begun > given.seconds:
            print(f"{section}: left out, the time is up; --only {section}")
            continue
        if reason := missing(section):
            print(f"{section}: left out: {reason}")
            continue
        try:
            for row in rows(section, setting, units, given.pairs):
                found.append(row)
                before = old.get(row.what)
                change = f"; was {before:.1f} {row.unit}, {before / row.ours:.2f}x" if before and row.ours else ""
                print(f"{row}{change}", flush=True)
        except Exception as error:  # the other sections are still worth their time
            failed.append(section)
            print(f"{section}: {type(error).__name__}: {error}", flush=True)
    if given.json:
        facts = {"device": name, "PyTorch": torch.__version__, "rows": [row._asdict() for row in found]}
        given.json.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def earlier_rows(path: Path) -> dict[str, float]:
    """Values of an earlier run, by row."""
    try:
        return {row["what"]: float(row["ours"]) for row in json.loads(path.read_text(encoding="utf-8"))["rows"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SystemExit(f"{path}: not the --json of an earlier run: {error}") from None


if __name__ == "__main__":
    main()

"""Outputs do not depend on batches, order or engine: `make prove-decoding`.

exact    the same sentences in batches of 1, 2, 3, 7, 16 and 64, each in 5 orders, with --exact: all tokens and the bits
         of all scores are those of the first time; and without it, tokens differ only where two were within 1e-4
engines  greedy outputs of every exported engine beside PyTorch's, in float32
phrases  outputs that were asked to hold phrases of their references do

    make prove-decoding MODEL=multi30k.model SOURCE=test.de REFERENCE=test.en

Without a model, one is trained on the dates and numbers of `heedful demo`, for about a minute.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.cli.main import main as run
from heedful.cli.options import use_threads
from heedful.engines.engine import Backend, decode_sorted
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig, with_outputs
from heedful.search.constraints import Constraints, holds
from heedful.search.interface import Hypothesis
from heedful.synthetic.corpus import generate
from heedful.text.encoding import encode_source
from heedful.text.lines import read_lines
from heedful.text.vocabulary import EOS, UNK

BATCH_SIZES = (1, 2, 3, 7, 16, 64)
NEAR = 1e-4
"""Nats within which two outputs may change places."""

Ids = NDArray[np.int64]
Texts = Sequence[str]


@dataclass
class Record:
    """What was compared, and what was not as it should be."""

    name: str
    num_compared: int = 0
    num_other_bits: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def show(self) -> str:
        """A line of the table."""
        other = f", {self.num_other_bits:,} with other bits" if self.num_other_bits else ""
        told = f"{self.num_compared:9,} compared{other}, {len(self.failures)} failed"
        return f"{self.name:44}{told}   {self.seconds:.0f} s"


def bits(found: Sequence[Hypothesis]) -> list[tuple[object, ...]]:
    """All that a source gave."""
    return [
        (one.token_ids, one.finish_reason, one.score.hex(), *(value.hex() for value in one.token_log_probs))
        for one in found
    ]


def sources_of(translator: Translator, lines: Iterable[str]) -> list[Ids]:
    """Sources as the model is given them; blank ones are left out."""
    found = (encode_source(translator.source_tokenizer, line, translator.text)[0] for line in lines)
    return [ids for ids in found if ids.tolist() != [EOS]]


def decode(
    backend: Backend, sources: Sequence[Ids], config: SearchConfig, size: int, order: Sequence[int]
) -> list[list[Hypothesis]]:
    """What each source gives, decoded so many at a time in an order."""
    found: dict[int, list[Hypothesis]] = {}
    for start in range(0, len(order), size):
        places = order[start : start + size]
        found.update(zip(places, decode_sorted(backend, [sources[place] for place in places], config), strict=True))
    return [found[place] for place in range(len(sources))]


def prove_batches(
    translator: Translator,
    sources: Sequence[Ids],
    beam: int,
    num_orders: int,
    is_exact: bool,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    say: Callable[[str], None] = lambda line: None,
) -> Record:
    """Decode all in every batch size and order, and compare with the first time."""
    config = with_outputs(translator.search, beam)
    backend = translator.backends.searching(config, is_exact=is_exact)
    record = Record(f"{backend.name}, beam {beam}, {'exact' if is_exact else 'default'}")
    started = time.monotonic()
    first = decode(backend, sources, config, 32, range(len(sources)))
    expected = [bits(found) for found in first]
    for size in batch_sizes:
        for shuffle in range(num_orders):
            order = [*range(len(sources))]
            random.Random(1000 * size + shuffle).shuffle(order)
            for place, found in enumerate(decode(backend, sources, config, size, order)):
                record.num_compared += 1
                if bits(found) == expected[place]:
                    continue
                record.num_other_bits += 1
                if is_exact or not _is_near(first[place][0], found[0]):
                    record.failures.append(f"batches of {size}, order {shuffle}, source {place}")
        say(f"{record.name}: batches of {size} done, {len(record.failures)} failed")
    record.seconds = time.monotonic() - started
    return record


def _is_near(one: Hypothesis, other: Hypothesis) -> bool:
    """Whether two outputs are the same, or nearly equally good.

    A search takes another path where two hypotheses are nearly equal, and may end elsewhere, also with another score;
    what may differ is the token where the paths part, so that is where the margin is taken.
    """
    tokens, others = (*one.token_ids, EOS), (*other.token_ids, EOS)
    if tokens == others:
        return abs(one.score - other.score) < NEAR
    return abs(one.score - other.score) < NEAR or _margin(one, other) < NEAR


def _margin(one: Hypothesis, other: Hypothesis) -> float:
    """How far apart the log probabilities of two outputs are, up to and with the first token that differs."""
    tokens, others = (*one.token_ids, EOS), (*other.token_ids, EOS)
    parts = next(place for place, (a, b) in enumerate(zip(tokens, others, strict=False)) if a != b)
    return abs(sum(one.token_log_probs[: parts + 1]) - sum(other.token_log_probs[: parts + 1]))


def prove_engines(model: Path, sources: Sequence[Ids], say: Callable[[str], None]) -> list[Record]:
    """Compare the greedy outputs of engines in float32 with PyTorch's."""
    torch = load(model, engine="torch")
    config = with_outputs(torch.search, 1)
    expected = decode_sorted(torch.backends.searching(config), sources, config)
    records: list[Record] = []
    for name, exported in torch.backends.exported.items():
        if exported.facts.get("precision") != "float32":
            continue
        record, started = Record(f"{name} beside torch, greedy"), time.monotonic()
        backend = load(model, engine=name).backends.searching(config)
        for place, (found, wanted) in enumerate(zip(decode_sorted(backend, sources, config), expected, strict=True)):
            record.num_compared += 1
            if found[0].token_ids != wanted[0].token_ids:
                record.failures.append(f"source {place}: {found[0].token_ids} for {wanted[0].token_ids}")
                say(f"{record.name}: {record.failures[-1]}")
        record.seconds = time.monotonic() - started
        records.append(record)
    return records


def phrase_of(tokens: Sequence[int], generator: random.Random) -> tuple[int, ...]:
    """Some tokens of a reference that stand beside each other."""
    length = generator.randint(1, min(4, len(tokens)))
    start = generator.randint(0, len(tokens) - length)
    return tuple(tokens[start : start + length])


def prove_phrases(translator: Translator, lines: Texts, references: Texts, beam: int, number: int) -> Record:
    """Ask for one to three phrases of each reference, and look for them in the outputs."""
    record, started = Record(f"phrases of references, beam {beam}"), time.monotonic()
    generator = random.Random(beam)
    sources: list[Ids] = []
    constraints: list[Constraints] = []
    for line, reference in zip(lines, references, strict=True):
        tokens = translator.target_tokenizer.encode(reference)
        ids = encode_source(translator.source_tokenizer, line, translator.text)[0]
        if len(tokens) and UNK not in tokens and len(ids) > 1 and len(constraints) < number:
            sources.append(ids)
            constraints.append(
                Constraints(required=[phrase_of(tokens, generator) for _ in range(generator.randint(1, 3))])
            )
    config = with_outputs(translator.search, beam)
    backend = translator.backends.searching(config, constraints=constraints[0])
    for place, found in enumerate(decode_sorted(backend, sources, config, constraints=constraints)):
        record.num_compared += 1
        for phrase in constraints[place].required:
            if not holds(found[0].token_ids, phrase):
                record.failures.append(f"source {place}: {phrase} is not in {found[0].token_ids}")
    record.seconds = time.monotonic() - started
    return record


def read_text(path: Path) -> list[str]:
    """The lines of a file."""
    with path.open("rb") as stream:
        return [*read_lines(stream, str(path))]


def train_small(folder: Path, minutes: float, num_sentences: int) -> tuple[Path, list[str], list[str]]:
    """Train a Transformer on dates and numbers; its model, and sources and references it never saw."""
    pairs, model = folder / "pairs.tsv", folder / "dates.model"
    written = "".join(f"{source}\t{target}\n" for source, target in generate(20_000, seed=1))
    pairs.write_text(written, encoding="utf-8", newline="\n")
    commands = [
        (
            "train",
            pairs,
            "--preset",
            "tiny",
            "--minutes",
            minutes,
            "--out",
            model,
            "--quiet",
            *("--set", "training.export=false"),
        )
    ]
    commands += [("export", model, "--to", engine, "--quiet") for engine in ("onnx", "ctranslate2")]
    for command in commands:
        if code := run([str(part) for part in command]):
            raise SystemExit(code)
    held_out = [*generate(num_sentences, seed=1, split="test")]
    return model, [source for source, _ in held_out], [target for _, target in held_out]


def main() -> None:
    """Prove all, and end with 1 where something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("source", type=Path, nargs="?")
    parser.add_argument("reference", type=Path, nargs="?")
    parser.add_argument("--only", choices=("exact", "engines", "phrases"))
    parser.add_argument("--engines", default="torch,onnx")
    parser.add_argument("--beams", default="1,5")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--orders", type=int, default=5)
    parser.add_argument("--default-orders", type=int, default=1, help="orders without --exact")
    parser.add_argument("--phrases", type=int, default=500)
    parser.add_argument("--minutes", type=float, default=1.0)
    given = parser.parse_args()
    use_threads(0)
    with tempfile.TemporaryDirectory() as folder:
        if given.model is None:
            model, lines, references = train_small(Path(folder), given.minutes, given.sentences)
        else:
            model, lines, references = given.model, read_text(given.source), read_text(given.reference)
        records: list[Record] = []

        def say(line: str) -> None:
            print(line, flush=True)

        beams = [int(beam) for beam in given.beams.split(",")]
        sources = sources_of(load(model), lines)[: given.sentences]
        if given.only in (None, "engines"):
            records += prove_engines(model, sources, say)
        if given.only in (None, "phrases"):
            for beam in beams:
                records.append(prove_phrases(load(model), lines, references, beam, given.phrases))
        if given.only in (None, "exact"):
            for engine in given.engines.split(","):
                for beam in beams:
                    for is_exact, number in ((True, given.orders), (False, given.default_orders)):
                        translator = load(model, engine=engine)
                        records.append(prove_batches(translator, sources, beam, number, is_exact, say=say))
        for record in records:
            print(record.show())
            for failure in record.failures[:5]:
                print(f"    {failure}")
    sys.exit(any(record.failures for record in records))


if __name__ == "__main__":
    main()

"""Distillation: training pairs whose targets are the outputs of a teacher. Kim and Rush 2016, arXiv:1606.07947, 3.2.

The outputs are written shard by shard, so that a run that was killed goes on behind its last whole shard, to the same
pairs.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from heedful.data.corpus import PairFile
from heedful.data.pair_rows import tsv_lines
from heedful.data.prepare import EvaluationSet
from heedful.engines.shards import Shard, plan_jobs, run_jobs
from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import atomic_write
from heedful.predictors.interface import spaced
from heedful.predictors.translator import Translator
from heedful.text.counts import counted
from heedful.text.lines import raw_lines
from heedful.text.tokenizer import Tokenizer

SHARD_LINES: Final = 512
"""Sources of a shard: what a killed run has to translate again, at most."""
MESSAGE_SECONDS: Final = 15.0
"""Shortest time between two lines about the progress."""
HELD_OUT: Final = 20
"""One source in so many is held out for validation, with its references, where no validation set is given."""
MOST_HELD_OUT: Final = 1000
MOST_COMPARED: Final = 500
MOST_DOUBTED: Final = 100
"""Number of items by which a teacher's languages are checked."""
LEAST_DOUBTED: Final = 10
MOST_UNKNOWN: Final = 0.2
"""Share of unknown tokens from which on probabilities say nothing."""
TURNED: Final = 0.5
"""Nats per token by which sources have to suit a teacher better as outputs to be a sign of the other direction."""
SOURCES: Final = "sources.txt"
OUTPUTS: Final = "outputs"
PAIRS: Final = "pairs.tsv"
DEV: Final = "dev.tsv"
SPACES: Final = str.maketrans({"\t": " ", "\n": " ", "\r": " "})
"""Characters that separate columns and rows, for `str.translate`."""


@final
@dataclass(frozen=True)
class Sources:
    """Sources of a teacher, and a validation set."""

    texts: list[str]
    dev: EvaluationSet
    """Items with references."""


def read_sources(pairs: PairFile, others: Iterable[str], dev: PairFile | None) -> Sources:
    """Collect the sources that a teacher shall translate.

    Args:
        pairs: rows whose sources are taken; of the targets only those of the held out sources.
        others: further sources, without targets.
        dev: validation set; None = some of the sources are held out.

    Returns:
        Each source once, in their order.

    Raises:
        DataError: there is none.
    """
    items = EvaluationSet.of(pairs)
    validation = EvaluationSet.of(dev) if dev else held_out_items(items)
    left_out: set[str] = set() if dev else {_one_cell(text) for text in validation.sources}
    every = map(_one_cell, (*items.sources, *others))
    texts = [text for text in dict.fromkeys(every) if text and text not in left_out]
    if not texts:
        raise DataError("distil: no source to translate; give more rows")
    return Sources(texts, validation)


def _one_cell(text: str) -> str:
    """Text as it stands in a cell of a table."""
    return text.translate(SPACES).strip()


def held_out_items(items: EvaluationSet) -> EvaluationSet:
    """Select the items that are held out for validation where no validation set is given.

    Returns:
        One in `HELD_OUT`, evenly spaced, and at most `MOST_HELD_OUT`.
    """
    return spaced(items, min(MOST_HELD_OUT, max(1, len(items) // HELD_OUT)))


def doubt(teacher: Translator, items: EvaluationSet) -> str:
    """Tell why a teacher does not seem to translate between the languages of the data.

    A translator gives a reference more probability than the reference of another source, and more than it gives the
    source as an output for the reference.

    Returns:
        One line; empty if all is well, or if there are too few items to tell.

    Cost: three forced decodings of at most `MOST_DOUBTED` pairs.
    """
    chosen = spaced(items, MOST_DOUBTED)
    if len(chosen) < LEAST_DOUBTED:
        return ""
    sources, targets = chosen.sources, [references[0] for references in chosen.references]
    unknown = _unknown_share(teacher.source_tokenizer, sources)
    if unknown > MOST_UNKNOWN:
        return (
            f"{teacher.folder.path} does not seem to translate between the languages of the data: "
            f"{100 * unknown:.0f} % of the source tokens are unknown to it"
        )
    straight = _per_token(teacher, sources, targets)
    can_be_turned = _unknown_share(teacher.target_tokenizer, sources) <= MOST_UNKNOWN
    if can_be_turned and _per_token(teacher, targets, sources) > straight + TURNED:
        return (
            f"{teacher.folder.path} seems to translate in the other direction: the sources of the data suit it better "
            "as outputs than the references do; --columns 2,1 swaps them"
        )
    if _per_token(teacher, sources, targets[1:] + targets[:1]) >= straight:
        return (
            f"{teacher.folder.path} does not seem to translate between the languages of the data: it gives the "
            "references no more probability than those of other sources"
        )
    return ""


def _unknown_share(tokenizer: Tokenizer, texts: list[str]) -> float:
    tokens = [token for text in texts for token in tokenizer.encode(text)]
    unknown = {*tokenizer.unknown_ids()}
    return sum(token in unknown for token in tokens) / max(1, len(tokens))


def _per_token(teacher: Translator, sources: list[str], targets: list[str]) -> float:
    scored = teacher.score([*zip(sources, targets, strict=True)])
    return sum(one.log_prob for one in scored) / sum(len(one.token_log_probs) for one in scored)


def write_pairs(teacher: Translator, sources: Sources, folder: Path, say: Callable[[str], None]) -> tuple[Path, Path]:
    """Translate sources with a teacher into a file of pairs, or go on with what an earlier run has written.

    Args:
        teacher: the model whose outputs become targets; its own search settings hold.
        folder: folder of the files; created if it does not exist.
        say: callback for lines about the progress.

    Returns:
        The file of pairs, without those whose output is empty, and that of the validation set.

    Raises:
        UsageError: the folder was begun with another teacher or other sources.
        OSError: the disk is full or refuses.
    """
    pairs = folder / PAIRS
    rows = translated_pairs(teacher, sources, folder, say)
    with atomic_write(pairs, is_internal=True) as stream:
        stream.writelines(tsv_lines(rows))
    dev = folder / DEV
    items = zip(sources.dev.sources, sources.dev.references, strict=True)
    with atomic_write(dev, is_internal=True) as stream:
        stream.writelines(tsv_lines([(text, one) for text, references in items for one in references]))
    return pairs, dev


def translated_pairs(
    teacher: Translator, sources: Sources, folder: Path, say: Callable[[str], None]
) -> list[tuple[str, str]]:
    """Translate sources, or go on with what an earlier run has translated.

    Args:
        teacher: the model; its own search settings hold.
        folder: folder of the outputs; created if it does not exist.
        say: callback for lines about the progress.

    Returns:
        Each source with its output, without those whose output is empty.

    Raises:
        UsageError: the folder was begun with another model or other sources.
        OSError: the disk is full or refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / SOURCES
    if not source.is_file():
        with atomic_write(source, is_internal=True) as stream:
            stream.writelines(f"{text}\n" for text in sources.texts)
    elif _lines(source) != sources.texts:
        raise UsageError(f"{folder}: begun with other sources; delete it, or name another folder with --out")
    about = {
        "teacher": teacher.folder.facts["files"][teacher.folder.file("weights").name],
        "search": teacher.search.model_dump(mode="json"),
    }
    jobs = plan_jobs([source], folder / OUTPUTS, about, SHARD_LINES)
    (job,) = run_jobs(jobs, lambda shards: _translated(teacher, shards, say))
    outputs = zip(sources.texts, _lines(job.output), strict=True)
    pairs = [(text, output) for text, output in outputs if output]
    if num_empty := len(sources.texts) - len(pairs):
        say(f"{counted(num_empty, 'source')} left out, because the model's output is empty")
    return pairs


def _translated(teacher: Translator, shards: list[Shard], say: Callable[[str], None]) -> Iterator[Shard]:
    last = -math.inf
    for index, shard in enumerate(shards):
        if time.monotonic() - last >= MESSAGE_SECONDS:
            last = time.monotonic()
            say(f"{counted(sum(one.num_lines for one in shards[index:]), 'source')} to translate")
        outputs = teacher.stream(shard.lines(), teacher.search)
        shard.write(f"{_one_cell(one.text)}\n" for one in outputs)
        yield shard


def _lines(path: Path) -> list[str]:
    with path.open("rb") as stream:
        return [raw.decode("utf-8") for raw in raw_lines(stream, str(path))]


def as_items(pairs: PairFile) -> EvaluationSet:
    """Select items for the comparison of teacher and student.

    Args:
        pairs: rows of a validation set.

    Returns:
        At most `MOST_COMPARED` items, evenly spaced.
    """
    return spaced(EvaluationSet.of(pairs), MOST_COMPARED)


def compared(teacher: Translator, student: Translator, items: EvaluationSet) -> str:
    """Compare a student with its teacher: score, size and speed, each with its usual search and engine.

    Args:
        teacher: the larger model.
        student: the smaller one.

    Returns:
        A table of two lines.
    """
    lines = [_measured(name, one, items) for name, one in (("teacher", teacher), ("student", student))]
    return "".join(lines)


def _measured(name: str, translator: Translator, items: EvaluationSet) -> str:
    measured = translator.measure(items)
    result = measured.report.results[0]
    megabytes = translator.folder.file("weights").stat().st_size / 1e6
    unit = " %" if result.metric.unit == "%" else ""
    speed = len(items) / max(1e-9, measured.seconds)
    return f"{name}  {result.metric.name} {result.score:.2f}{unit}, {megabytes:.1f} MB, {speed:.1f} sources a second\n"

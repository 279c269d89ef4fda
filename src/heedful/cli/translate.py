"""Translate texts: one line in, one line out.

Texts are arguments, lines of a file, or lines of standard input; on a terminal, each line is translated at once. Only
line feeds end a line, an empty line gives an empty line, and a line too long for the model is truncated with a warning.

Output, UTF-8:
  text                 the translation
  text --align         translation TAB links, such as 0-0 1-2 (source word - target word, counted from 0)
  text --nbest N       format of Moses: line number from 0 ||| translation ||| log_prob= X ||| score
  jsonl                one object per line with all of this

Many files: heedful translate MODEL --ray FILE... --output FOLDER splits them into shards, translated by --workers
processes or by the cluster named in RAY_ADDRESS, with the same outputs as one process. Run the same command again to
resume.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal, TextIO, final

import typer

from heedful.cli.messages import Messages, RepeatedWarning
from heedful.cli.options import (
    Debug,
    Device,
    Engine,
    EnsembleModels,
    ModelPath,
    OutputPath,
    Quiet,
    ReplaceUnknown,
    Threads,
    use_threads,
)
from heedful.cli.search_options import (
    Ban,
    Diversity,
    Groups,
    MinP,
    Nbest,
    Prefix,
    Require,
    Sample,
    SampleSeed,
    SearchBeam,
    SearchOptions,
    Temperature,
    TopK,
    TopP,
)
from heedful.custom_code import allow_code, allowed_code
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.predictors.translation import Translation
    from heedful.predictors.translator import Translator
    from heedful.runtime.shards import Shard
    from heedful.runtime.text_constraints import TextConstraints
    from heedful.search.config import SearchConfig
    from heedful.text.lines import Lines

OutputFormat = Literal["text", "jsonl"]
Texts = Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts to translate.", show_default=False)]
InputPath = Annotated[
    Path | None, typer.Option("--input", "-i", metavar="FILE", help="File of texts, one per line; - is standard input.")
]
Format = Annotated[OutputFormat, typer.Option("--format", help="Output format.")]
Align = Annotated[bool, typer.Option("--align", help="Add word alignments.")]
BatchTokens = Annotated[int, typer.Option(min=1, help="Batch size: source positions times beam; 1 = line by line.")]
Exact = Annotated[
    bool, typer.Option("--exact", help="Make each output independent of the rest of its batch, to the bit; slower.")
]
Ray = Annotated[
    bool, typer.Option("--ray", help="Take TEXT as files, and translate them into the folder --output with Ray Data.")
]
Workers = Annotated[int, typer.Option(min=0, help="Number of processes with --ray; 0 = one per physical core.")]

STANDARD: Final = Path("-")
_BREAKS: Final = str.maketrans({"\n": " ", "\r": " "})
_BREAKS_AND_TABS: Final = str.maketrans({"\n": " ", "\r": " ", "\t": " "})


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    target: OutputPath = None,
    output_format: Format = "text",
    align: Align = False,
    engine: Engine = "auto",
    ensemble: EnsembleModels = None,
    replace_unknown: ReplaceUnknown = None,
    batch_tokens: BatchTokens = 4096,
    exact: Exact = False,
    beam: SearchBeam = None,
    nbest: Nbest = 1,
    groups: Groups = None,
    diversity: Diversity = None,
    prefix: Prefix = "",
    require: Require = None,
    ban: Ban = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    seed: SampleSeed = None,
    device: Device = "auto",
    ray: Ray = False,
    workers: Workers = 0,
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate texts.

    Raises:
        UsageError: the options conflict.
    """
    use_threads(threads)
    if texts and source is not None:
        raise UsageError("translate: give texts or --input, not both")
    if align and nbest > 1 and output_format == "text":
        raise UsageError("translate: --align with --nbest needs --format jsonl, which has room for both")
    from heedful.runtime.text_constraints import TextConstraints

    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
    options = SearchOptions(beam, nbest, groups, diversity, drawn, sample, replace_unknown)
    constraints = TextConstraints(prefix, require or (), ban or ())
    written = _Written(output_format, align, nbest, batch_tokens, exact, constraints)
    work = _Work(model, engine, device, tuple(ensemble or ()), options, written)
    if not (ray or workers):
        written.translate(work.translator(), options, texts or (), source, target, Messages(quiet))
    elif not ray or not texts or target is None:
        raise UsageError("translate: --ray takes files and a folder: translate MODEL --ray FILE... --output FOLDER")
    else:
        work.resolved().translate([Path(text) for text in texts], target, workers, threads, Messages(quiet))


@final
@dataclass(frozen=True)
class _Written:
    """Format of the output, and options of decoding."""

    output_format: OutputFormat
    align: bool
    nbest: int
    batch_tokens: int
    exact: bool
    constraints: "TextConstraints"

    def translate(
        self,
        translator: "Translator",
        options: SearchOptions,
        texts: Sequence[str],
        source: Path | None,
        target: Path | None,
        messages: Messages,
    ) -> None:
        from heedful.cli.scoring import tell_engine
        from heedful.predictors.translator import WINDOW_LINES

        constraints = self.constraints.encode(translator.target_tokenizer)
        search = tell_engine(translator, options.search(translator), self.align, messages, constraints, self.exact)
        is_prompting = not texts and source is None and sys.stdin.isatty()
        window_lines = 1 if is_prompting or self.batch_tokens == 1 else WINDOW_LINES
        cut = RepeatedWarning(messages, "lines were cut")
        with _opened_input(texts, source) as lines, opened_output(target) as output:
            remaining = _watched(lines, messages, is_prompting)
            index = 0
            # One window at a time, so that translations are written as soon as they are made.
            while window := list(islice(remaining, window_lines)):
                for translation, text in self.texts(translator, search, window, index):
                    if translation.was_cut:
                        cut.add(f"{lines.name}:{index + 1}: cut after {translator.text.max_tokens} tokens")
                    output.write(text)
                    index += 1
                output.flush()
        cut.close()

    def texts(
        self, translator: "Translator", search: "SearchConfig", window: Iterable[str], first_index: int
    ) -> "Iterator[tuple[Translation, str]]":
        """Translations with their written form."""
        outputs = translator.stream(
            window,
            search,
            self.align,
            self.batch_tokens,
            first_index=first_index,
            wording=self.constraints,
            exact=self.exact,
        )
        for index, each in enumerate(outputs, first_index):
            yield each, _written(each, index, self.output_format, self.align, self.nbest)


@final
@dataclass(frozen=True)
class _Work:
    """Work description for a worker, so that it translates exactly as a single process."""

    model: Path
    engine: str
    device: str
    ensemble: tuple[Path, ...]
    options: SearchOptions
    written: _Written
    code: tuple[str, ...] = field(default_factory=allowed_code)
    """Classes outside the package that the user named, because a worker is another process."""

    def translator(self) -> "Translator":
        from heedful.cli.scoring import load_to_run

        return load_to_run(self.model, self.engine, self.device, self.ensemble)

    def resolved(self) -> "_Work":
        """Copy with absolute paths, for a worker in another folder."""
        return replace(self, model=self.model.resolve(), ensemble=tuple(each.resolve() for each in self.ensemble))

    def translate(self, sources: Sequence[Path], folder: Path, workers: int, threads: int, messages: Messages) -> None:
        from heedful.cli.cores import physical_cores
        from heedful.cli.many_files import ManyFiles, translate_files
        from heedful.cli.scoring import tell_engine

        translator = self.translator()
        constraints = self.written.constraints.encode(translator.target_tokenizer)
        search, exact = self.options.search(translator), self.written.exact
        tell_engine(translator, search, self.written.align, messages, constraints, exact)
        about = {
            "model": translator.folder.facts["files"][translator.folder.facts["weights"]],
            "ensemble": [str(each) for each in self.ensemble],
            "search": search.model_dump(mode="json"),
            "engine": translator.backends.searching(search, self.written.align, constraints, exact).name,
            "output": asdict(self.written),
        }
        del translator
        threads_each = threads or 1
        num_workers = workers or max(1, physical_cores() // threads_each)
        files = ManyFiles([source.resolve() for source in sources], folder.resolve(), num_workers, threads_each)
        translate_files(files, about, self, messages)

    def load(self) -> "Callable[[Shard], int]":
        """Load the model in a worker."""
        allow_code(self.code)
        translator = self.translator()
        search = self.options.search(translator)

        def translate(shard: "Shard") -> int:
            num_cut = 0

            def texts() -> Iterator[str]:
                nonlocal num_cut
                for output, text in self.written.texts(translator, search, shard.lines(), shard.first_line):
                    num_cut += output.was_cut
                    yield text

            shard.write(texts())
            return num_cut

        return translate


@contextmanager
def _opened_input(texts: Sequence[str], source: Path | None) -> "Generator[Lines]":
    from heedful.text.lines import read_lines
    from heedful.text.text_files import check_file

    if texts:
        # The bytes of the argument, exactly as the shell passed them.
        joined = io.BytesIO(b"".join(os.fsencode(text) + b"\n" for text in texts))
        yield read_lines(joined, "argument", bad_bytes="replace")
    elif source is None or source == STANDARD:
        yield read_lines(_standard_input(), "standard input", bad_bytes="replace")
    else:
        if not source.exists() or source.is_dir():
            check_file(source)  # says what there is instead
        # Opened once: it may be a pipe.
        with source.open("rb") as stream:
            yield read_lines(stream, str(source), bad_bytes="replace")


def _standard_input() -> BinaryIO:
    return sys.stdin.buffer


def _watched(lines: "Lines", messages: Messages, is_prompting: bool) -> Iterator[str]:
    """Lines of the input; prompts on a terminal, and warns of bytes that are not UTF-8."""
    replaced = RepeatedWarning(messages, "lines were not UTF-8")
    num_replaced = 0
    while True:
        if is_prompting:
            print("> ", end="", file=sys.stderr, flush=True)
        line = next(lines, None)
        if line is None:
            break
        if lines.num_replaced > num_replaced:
            num_replaced = lines.num_replaced
            replaced.add(f"{lines.name}:{lines.num_lines}: not UTF-8; invalid bytes read as U+FFFD")
        yield line
    if is_prompting:
        print(file=sys.stderr)
    replaced.close()


@contextmanager
def opened_output(path: Path | None) -> Generator[TextIO]:
    """Open a file that is renamed to its final name once it is complete.

    Args:
        path: output file; None or "-" = standard output. Devices and pipes are written to directly.

    Yields:
        A text stream, UTF-8 with LF.

    Raises:
        OSError: writing failed; the message names the file.
    """
    if path is None or path == STANDARD:
        yield sys.stdout
        sys.stdout.flush()
        return
    is_plain = path.is_file() or not path.exists()
    written = path.with_name(path.name + ".part") if is_plain else path
    try:
        with written.open("w", encoding="utf-8", errors="replace", newline="\n") as stream:
            yield stream
        if is_plain:
            written.replace(path)
    except OSError as error:
        # OSErrors of write calls do not name the file.
        error.filename = error.filename or str(written)
        raise


def _written(output: "Translation", index: int, output_format: OutputFormat, align: bool, nbest: int) -> str:
    if output_format == "jsonl":
        return json.dumps(_facts(output, index, align), ensure_ascii=False) + "\n"
    if nbest > 1:
        return "".join(
            f"{index} ||| {other.text.translate(_BREAKS)} ||| log_prob= {other.log_prob:.6f} ||| {other.score:.6f}\n"
            for other in output.alternatives
        )
    if align:
        return f"{output.text.translate(_BREAKS_AND_TABS)}\t{output.pharaoh()}\n"
    return output.text.translate(_BREAKS) + "\n"


def _facts(output: "Translation", index: int, align: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "line": index + 1,
        "source": output.source,
        "text": output.text,
        "log_prob": output.log_prob,
        "score": output.score,
        "was_cut": output.was_cut,
        "alternatives": [vars(other) for other in output.alternatives],
    }
    if output.unreplaced:
        facts["unreplaced"] = output.unreplaced
    if align:
        facts["source_pieces"] = list(output.source_pieces)
        facts["target_pieces"] = list(output.target_pieces)
        facts["alignment"] = [list(link) for link in output.alignment or ()]
    return facts

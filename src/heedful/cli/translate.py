"""Translate texts: one line in, one line out.

Texts are arguments, lines of a file, or lines of standard input; on a terminal, each line is translated at once. Only
line feeds end a line, an empty line gives an empty line, and a line too long for the model is truncated with a warning.
An argument of several lines is one text, whose lines that go on in the next are joined, as in a document.

Examples:
  heedful translate pairs.model 'Where is the station?'
  heedful translate pairs.model -i news.de -o news.en
  heedful translate pairs.model --beam 10 --nbest 5 < news.de
  heedful translate pairs.model --terms terms.tsv < news.de
  heedful translate pairs.model --min-confidence 0.8 --format jsonl < news.de
  heedful translate pairs.model report.docx -o bericht.docx
  heedful translate pairs.model -i news.csv --columns german -o translated.csv
  heedful translate pairs.model --ray *.de --output translated --workers 4

Output, UTF-8:
  text                 the translation
  text --align         translation TAB links, such as 0-0 1-2 (source word - target word, counted from 0)
  text --nbest N       format of Moses: line number from 0 ||| translation ||| log_prob= X ||| score
  jsonl                one object per line with all of this

A line with more sentences than training lines have is translated sentence by sentence; --segments line translates it at
once. Addresses, numbers, placeholders, emoji and what --keep finds stay as they are.

With --min-confidence P, an output that is right with a probability below P is left out: its line is empty, and in
jsonl it is "withheld", beside its "confidence"; with --nbest none of its alternatives is given. The model must have
been calibrated, as heedful train does.

A model whose sources are several columns reads the same columns of a table, one output a row, or lines with " | " or
tabs between them, such as 'gehen | V;PST'.

Corrections of the model (heedful correct) are the outputs of their sources, and the outputs of similar sources follow
them: the correction is named on standard error, and as "memory" in jsonl, with the share of characters that match and
the output of the model alone ("unbiased").

Documents: heedful translate MODEL FILE -o FILE writes a file of the same format in other words. A sentence with formats
or tags is translated whole, and each is set where its words went.

Tables: a file whose name ends in .csv, .jsonl or .parquet is given back, in order, with the column "translation" behind
its own, in the form that the name of the output tells, or with --format jsonl as lines of JSON; --columns names the
column of the sources. One that ends in .tsv is a table where --columns is given or the output is .csv, .jsonl or
.parquet; else its lines are texts.

Many files: heedful translate MODEL --ray FILE... --output FOLDER splits them into shards, translated by --workers
processes or by the cluster named in RAY_ADDRESS, with the same outputs as one process. Run the same command again to
resume.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from heedful.cli.answered_tables import InputColumn, is_table_file
from heedful.cli.decoding import Decoding
from heedful.cli.documents import document_among
from heedful.cli.lines import InputPath, LineFormat, Segments, Texts, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    MOST_THREADS,
    SPEED,
    BatchTokens,
    Beam,
    Debug,
    Device,
    Engine,
    EnsembleModels,
    LastColumn,
    ModelPath,
    OutputPath,
    Quiet,
    ReplaceUnknown,
    Shortlist,
    Threads,
    use_threads,
)
from heedful.cli.search_options import (
    Ban,
    BindTerms,
    Diversity,
    Groups,
    Keep,
    MinP,
    Nbest,
    Prefix,
    Require,
    Sample,
    SampleSeed,
    SearchOptions,
    Temperature,
    TermLanguages,
    TermsPath,
    TopK,
    TopP,
    listed_terms,
    text_constraints,
)
from heedful.cli.source_columns import reads_columns
from heedful.cli.translated_tables import source_table
from heedful.config.plugins import allow_code, allowed_code
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.engines.shards import Shard
    from heedful.predictors.translator import Translator

Align = Annotated[bool, typer.Option("--align", help="Add word alignments.", rich_help_panel=FILES)]
MinConfidence = Annotated[
    float | None,
    typer.Option(
        "--min-confidence",
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help="Leave out outputs that are right with a smaller probability; 0 leaves out none, and adds it to jsonl.",
        rich_help_panel=FILES,
    ),
]
Memory = Annotated[
    bool | None,
    typer.Option(
        "--memory/--no-memory",
        help="Give sources that are in the training pairs their commonest target there. Default: as validation chose.",
        show_default=False,
        rich_help_panel=FILES,
    ),
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact",
        help="Make each output independent of the rest of its batch, to the bit; slower.",
        rich_help_panel=SPEED,
    ),
]
Ray = Annotated[
    bool,
    typer.Option(
        "--ray",
        help="Take TEXT as files, and translate them into the folder --output with Ray Data.",
        rich_help_panel=SPEED,
    ),
]
Workers = Annotated[
    int,
    typer.Option(
        min=0,
        max=MOST_THREADS,
        metavar="INTEGER",
        help="Number of processes with --ray; 0 = one per physical core.",
        rich_help_panel=SPEED,
    ),
]


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    columns: InputColumn = "",
    last_column: LastColumn = "",
    target: OutputPath = None,
    output_format: LineFormat = "text",
    align: Align = False,
    min_confidence: MinConfidence = None,
    memory: Memory = None,
    segments: Segments = "auto",
    engine: Engine = "auto",
    ensemble: EnsembleModels = None,
    beam: Beam = None,
    nbest: Nbest = 1,
    replace_unknown: ReplaceUnknown = None,
    shortlist: Shortlist = False,
    groups: Groups = None,
    diversity: Diversity = None,
    prefix: Prefix = "",
    require: Require = None,
    ban: Ban = None,
    terms: TermsPath = None,
    term_languages: TermLanguages = "",
    bind_terms: BindTerms = False,
    keep: Keep = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    seed: SampleSeed = None,
    batch_tokens: BatchTokens = 4096,
    exact: Exact = False,
    ray: Ray = False,
    workers: Workers = 0,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate texts.

    Raises:
        UsageError: the options conflict.
    """
    use_threads(threads)
    drawn = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
    options = SearchOptions(beam, nbest, groups, diversity, drawn, sample, replace_unknown, shortlist)
    constraints = text_constraints(prefix, require, ban, listed_terms(terms, term_languages, model), bind_terms, keep)
    rest = batch_tokens, exact, constraints, min_confidence, segments, columns, last_column, memory
    work = _Work(model, engine, device, tuple(ensemble or ()), options, Decoding(output_format, align, nbest, *rest))
    files = ((texts or ()) if ray else ()) if ray or workers else None
    work.start(texts, source, target, files, workers, threads, Messages(quiet))


@final
@dataclass(frozen=True)
class _Work:
    """Work description for a worker, so that it translates exactly as a single process."""

    model: Path
    engine: str
    device: str
    ensemble: tuple[Path, ...]
    options: SearchOptions
    decoding: Decoding
    code: tuple[str, ...] = field(default_factory=allowed_code)
    """Classes outside the package that the user named, because a worker is another process."""
    code_folder: str = field(default_factory=os.getcwd)
    """Folder that these classes are searched in, besides the installed modules."""

    def __post_init__(self) -> None:
        self.decoding.refuse_conflicts(bool(self.ensemble))

    def translator(self) -> "Translator":
        from heedful.cli.scoring import load_to_run
        from heedful.predictors.translator import Translator

        where = self.model, self.engine, self.device, self.ensemble
        return load_to_run(*where, kind=Translator, last_column=self.decoding.last_column)

    def start(
        self,
        texts: Sequence[str] | None,
        source: Path | None,
        target: Path | None,
        files: Sequence[str] | None,
        workers: int,
        threads: int,
        messages: Messages,
    ) -> None:
        """Translate texts here or, unless they are None, files in other processes."""
        require_one(texts, source)
        if files is None:
            self.run(texts or (), source, target, messages)
        else:
            self.resolved().translate(files, target, workers, threads, messages)

    def run(self, texts: Sequence[str], source: Path | None, target: Path | None, messages: Messages) -> None:
        is_rows = is_table_file(source) and reads_columns(self.model)
        if table := None if is_rows else source_table(source, target, self.decoding.columns):
            self.decoding.translate_table(self.translator(), self.options, table, target, messages)
        elif document := None if is_rows else document_among(texts, source, target):
            self.decoding.translate_document(self.translator, self.options, document, target, messages)
        else:
            self.decoding.translate(self.translator(), self.options, texts, source, target, messages)

    def resolved(self) -> "_Work":
        """Copy with absolute paths, for a worker in another folder."""
        return replace(self, model=self.model.resolve(), ensemble=tuple(each.resolve() for each in self.ensemble))

    def translate(
        self, texts: Sequence[str] | None, folder: Path | None, workers: int, threads: int, messages: Messages
    ) -> None:
        if not texts or folder is None:
            raise UsageError("translate: --ray takes files and a folder: translate MODEL --ray FILE... --output FOLDER")
        from heedful.cli.many_files import ManyFiles, translate_files
        from heedful.cli.scoring import announce_engine
        from heedful.cpu.cores import physical_cores
        from heedful.files.records import checksum
        from heedful.predictors.confidence import ROLE

        translator = self.translator()
        self.decoding.check_confidence(translator)
        constraints = self.decoding.constraints.of_sources(translator.target_tokenizer).strictest
        search, exact = self.options.search(translator), self.decoding.exact
        announce_engine(translator, search, self.decoding.align, messages, constraints, exact)
        about = {
            "model": translator.folder.facts["files"][translator.folder.file("weights").name],
            "ensemble": [str(each) for each in self.ensemble],
            "search": search.model_dump(mode="json"),
            "engine": translator.backends.searching(search, self.decoding.align, constraints, exact).name,
            "output": asdict(self.decoding),
        }
        if corrections := translator.memory.state().content.corrections:
            about["corrections"] = checksum({one.source: one.correction for one in corrections})
        if self.decoding.min_confidence is not None:
            about["confidence"] = str(translator.folder.facts.get(ROLE))  # the name of the file has its hash
        del translator
        threads_each = threads or 1
        num_workers = workers or max(1, physical_cores() // threads_each)
        files = ManyFiles([Path(text).resolve() for text in texts], folder.resolve(), num_workers, threads_each)
        translate_files(files, about, self, messages)

    def load(self) -> "Callable[[Shard], int]":
        """Load the model in a worker."""
        allow_code(self.code)
        if self.code:
            sys.path.append(self.code_folder)  # a worker may have started in another folder
        translator = self.translator()
        search = self.options.search(translator)

        def translate(shard: "Shard") -> int:
            num_cut = 0

            def texts() -> Iterator[str]:
                nonlocal num_cut
                for output, text in self.decoding.texts(translator, search, shard.lines(), shard.first_line):
                    num_cut += output.was_cut
                    yield text

            shard.write(texts())
            return num_cut

        return translate

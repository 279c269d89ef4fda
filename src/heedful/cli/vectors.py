"""Train word vectors on text, for the embeddings of a model.

CORPUS is text, one sentence per line, words separated by spaces, optionally gzipped. The output is in word2vec text
format, which other tools read too; use it with --set text.source_vectors=FILE or text.target_vectors=FILE.

Examples:
  heedful vectors news.de -o de.vec
  heedful vectors pairs.tsv --column 1 --size 256 -o source.vec
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.lines import refuse_overwriting
from heedful.cli.messages import Messages
from heedful.cli.options import MOST_ITEMS, MOST_SEED, Debug, IdleDevice, IdleThreads, Quiet
from heedful.text.durations import duration


def run(
    corpus: Annotated[
        list[Path], typer.Argument(metavar="CORPUS", help="Text files of one language.", show_default=False)
    ],
    target: Annotated[Path, typer.Option("--output", "--out", "-o", metavar="FILE", help="Output file.")],
    column: Annotated[
        int,
        typer.Option(
            min=0, max=MOST_ITEMS, help="Tab-separated column to read; 0 = the whole line.", metavar="INTEGER"
        ),
    ] = 0,
    size: Annotated[
        int,
        typer.Option(
            min=1, max=100_000, metavar="INTEGER", help="Size of the vectors, equal to the model's embedding size."
        ),
    ] = 100,
    method: Annotated[
        Literal["skip-gram", "cbow"],
        typer.Option(metavar="skip-gram|cbow", help="Architecture; cbow is faster, but worse on rare words."),
    ] = "skip-gram",
    window: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="INTEGER", help="Context words on each side.")
    ] = 5,
    min_count: Annotated[
        int, typer.Option(min=1, max=1_000_000, metavar="INTEGER", help="Least frequency of a word with a vector.")
    ] = 5,
    epochs: Annotated[int, typer.Option(min=1, max=1_000_000, metavar="INTEGER", help="Passes through the text.")] = 5,
    seed: Annotated[int, typer.Option(min=0, max=MOST_SEED, metavar="INTEGER", help="Random seed.")] = 1,
    device: IdleDevice = "auto",
    threads: IdleThreads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train word vectors."""
    import time

    from heedful.text.text_files import check_file
    from heedful.text.vectors import write_vectors
    from heedful.text.word2vec import Word2VecConfig, WordLines, train_vectors

    for path in corpus:
        check_file(path)
    refuse_overwriting(target, corpus)
    config = Word2VecConfig(method=method, size=size, window=window, min_count=min_count, epochs=epochs, seed=seed)
    started = time.perf_counter()
    vectors = train_vectors(WordLines(corpus, config.normalization, column), config)
    write_vectors(target, vectors.words, vectors.matrix)
    seconds = duration(time.perf_counter() - started)
    Messages(quiet).say(f"{target}: {len(vectors.words):,} words, {vectors.size} numbers each, in {seconds}")

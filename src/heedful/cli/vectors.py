"""Train word vectors on text, for the embeddings of a model.

CORPUS is text, a sentence a line, words separated by spaces; gzip or not. The result is word2vec text, which a model
takes with --set text.source_vectors=FILE or text.target_vectors=FILE, and other tools read too.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heedful.cli.messages import Messages
from heedful.cli.options import Debug, IdleDevice, IdleThreads, Quiet
from heedful.text.durations import duration


def run(
    corpus: Annotated[
        list[Path], typer.Argument(metavar="CORPUS", help="Files of text, all of one language.", show_default=False)
    ],
    target: Annotated[Path, typer.Option("--output", "--out", "-o", metavar="FILE", help="Write the vectors there.")],
    column: Annotated[
        int, typer.Option(min=0, help="Read this column between tabs; 0 = the whole line.", metavar="N")
    ] = 0,
    size: Annotated[int, typer.Option(min=1, help="Numbers in each vector; that of the model's embedding.")] = 100,
    method: Annotated[
        Literal["skip-gram", "cbow"], typer.Option(help="cbow is faster, and worse on rare words.")
    ] = "skip-gram",
    window: Annotated[int, typer.Option(min=1, help="Words to either side that count.")] = 5,
    min_count: Annotated[int, typer.Option(min=1, help="Words seen less often get no vector.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Times the text is gone through.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of the random numbers.")] = 1,
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
    config = Word2VecConfig(method=method, size=size, window=window, min_count=min_count, epochs=epochs, seed=seed)
    started = time.perf_counter()
    vectors = train_vectors(WordLines(corpus, config.normalization, column), config)
    write_vectors(target, vectors.words, vectors.matrix)
    seconds = duration(time.perf_counter() - started)
    Messages(quiet).say(f"{target}: {len(vectors.words):,} words, {vectors.size} numbers each, in {seconds}")

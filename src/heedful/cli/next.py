"""Choose texts to label next: those that the model is least sure of, unlike each other.

POOL is a file of texts without labels, one per line. Each is written once, with the model's own output, which only
needs to be corrected; the most useful is the first. The file is then data: label, train again, and ask for more.

Examples:
  heedful next reviews.model pool.txt -n 100 -o label-me.tsv
  heedful train label-me.tsv --from reviews.model --out better.model
  heedful next words.model words.txt -n 200 --known words.tsv --format jsonl

Output, UTF-8, one line per text:
  text    text TAB output of the model
  jsonl   an object: source, output, uncertainty
"""

import json
from pathlib import Path
from typing import Annotated

import typer

from heedful.cli.lines import LineFormat, one_line, opened_output, text_lines
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    ColumnsText,
    Debug,
    Device,
    Engine,
    ModelPath,
    OutputPath,
    Quiet,
    Threads,
    parse_columns,
    use_threads,
)
from heedful.errors import DataError
from heedful.text.counts import counted

PoolPath = Annotated[Path, typer.Argument(metavar="POOL", help="File of texts, one per line.", show_default=False)]
Number = Annotated[
    int, typer.Option("--number", "-n", min=1, max=100_000, metavar="INTEGER", help="Number of texts to choose.")
]
KnownPath = Annotated[
    Path | None,
    typer.Option("--known", metavar="FILE", help="Labelled data, whose texts are left out.", rich_help_panel=FILES),
]


def run(
    model: ModelPath,
    pool: PoolPath,
    number: Number = 100,
    target: OutputPath = None,
    known: KnownPath = None,
    columns: ColumnsText = "",
    output_format: LineFormat = "text",
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Choose texts.

    Raises:
        DataError: the pool has no text that is not known.
    """
    use_threads(threads)
    from heedful.cli.scoring import load_to_run
    from heedful.data.corpus import find_pairs
    from heedful.predictors.interface import Predictor
    from heedful.predictors.selection import candidates, select

    messages = Messages(quiet)
    labelled = {pair.source.strip() for pair in find_pairs([known], parse_columns(columns))} if known else set[str]()
    texts = dict.fromkeys(text for line in text_lines([pool]) if (text := line.strip()))
    unlabelled = [text for text in texts if text not in labelled]
    if not unlabelled:
        reason = "no text" if not texts else "all of its texts are in --known"
        raise DataError(f"{pool}: {reason}; give texts without labels, one per line")
    predictor = load_to_run(model, engine, device, kind=Predictor)
    chosen = select([*candidates(predictor, unlabelled)], number)
    with opened_output(target, (pool, known)) as file:
        for each in chosen:
            if output_format == "jsonl":
                facts = {"source": each.text, "output": each.output, "uncertainty": round(each.uncertainty, 6)}
                file.write(json.dumps(facts, ensure_ascii=False) + "\n")
            else:
                file.write(f"{one_line(each.text)}\t{one_line(each.output)}\n")
    messages.say(f"{counted(len(chosen), 'text')} of {len(unlabelled):,} chosen")

"""Write texts with the pronunciations of their words.

The model is one from letters to phones. Each word is replaced by its phones; spaces, punctuation, addresses, tags and
placeholders stay as they are, and so do numbers unless --readings names a model that reads them out. Phones of several
letters are written between braces, as {HH AH0 L OW1}, letters of the IPA without. Words with letters that the model
does not know stay as they are, and are named. Texts are arguments, lines of a file, or lines of standard input; one
line in, one line out.

With --readings, numbers, dates, amounts, times and abbreviations are first written as they are read out, by a model
from written forms to words, such as that of heedful demo --task readings (English) or readings-zh (Chinese). Where it
is not sure, they stay as they are, and are named. A model whose sources are a word and its sentence, trained with
--columns word+sentence,phones, pronounces each word as in its sentence.

With --known, pronunciations of FILE, a lexicon in any format of heedful lexicon, are taken as they are. With --format
jsonl, each line is an object: the text, the text with phones, and for each word its place in the text in characters
(start, end; of a reading, that of the number), its phones and their probability (1 in a lexicon, 0 without phones).

Examples:
  heedful pronounce cmu.model 'Hello, world!'
  heedful pronounce ron.model -i book.txt -o book.phones --known names.dict
  heedful pronounce ron.model -i book.txt --format jsonl
  heedful pronounce cmu.model --readings readings.model 'It is 3:45 pm.'
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from heedful.cli.lexicon import KnownPath, read_known
from heedful.cli.lines import InputPath, LineFormat, Texts, answer_lines, require_one
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    Debug,
    Device,
    Engine,
    LastColumn,
    ModelPath,
    OutputPath,
    Quiet,
    Threads,
    use_threads,
)
from heedful.text.chinese_words import has_rows, tells_words_apart
from heedful.text.counts import counted
from heedful.text.pronunciations import PronouncedText

ReadingsModel = Annotated[
    Path | None,
    typer.Option(
        "--readings",
        metavar="MODEL",
        help="Model that writes numbers, dates and abbreviations as they are read out.",
        show_default="they stay as they are",
        rich_help_panel=FILES,
    ),
]
_WINDOW: Final = 256
_SHOWN: Final = 3


def run(
    model: ModelPath,
    texts: Texts = None,
    source: InputPath = None,
    last_column: LastColumn = "",
    target: OutputPath = None,
    known: KnownPath = None,
    readings: ReadingsModel = None,
    output_format: LineFormat = "text",
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Pronounce texts."""
    use_threads(threads)
    require_one(texts, source)
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.form_reader import FormReader
    from heedful.predictors.pronouncer import Pronouncer
    from heedful.predictors.translator import Translator

    reader = FormReader(load_to_run(readings, engine, device, kind=Translator)) if readings else None
    pronouncer = Pronouncer(load_to_run(model, engine, device, kind=Translator, last_column=last_column))
    entries = read_known(known) if known else {}
    messages = Messages(quiet)
    unread: dict[str, None] = {}
    lacks_jieba = False

    def lines(window: list[str], first_index: int) -> Iterator[tuple[str, bool]]:
        nonlocal lacks_jieba
        lacks_jieba = lacks_jieba or (not tells_words_apart() and any(map(has_rows, window)))
        for text in pronouncer.pronounce_texts(window, entries, reader):
            unread.update(dict.fromkeys(one.word for one in text.words if not one.phones))
            yield _line(text, pronouncer.has_spaces, output_format == "jsonl") + "\n", False

    answer_lines(lines, texts or (), source, target, messages, _WINDOW, pronouncer.translator.text.max_tokens)
    if lacks_jieba:
        messages.warn("characters in a row were taken for one word: pip install 'heedful[phones]' tells words apart")
    if unread:
        some = ", ".join([*unread][:_SHOWN]) + (", ..." if len(unread) > _SHOWN else "")
        messages.warn(f"{counted(len(unread), 'word')} left as written, which the model cannot pronounce: {some}")


def _line(text: PronouncedText, has_spaces: bool, is_json: bool) -> str:
    shown = text.shown(has_spaces)
    if not is_json:
        return shown
    words = [
        {
            "start": one.start,
            "end": one.end,
            "word": one.word,
            "phones": [*one.phones],
            "probability": round(one.probability, 6),
        }
        for one in text.words
    ]
    return json.dumps({"text": text.text, "pronounced": shown, "words": words}, ensure_ascii=False)

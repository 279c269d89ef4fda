"""Write the pronunciation lexicon of a speech program.

The model is one from letters to phones. Words are the lines of a file or, with --text, the words of a running text.
Each word is written once, in the order of its first occurrence. Case is that which the model was trained on. Words
with spaces, with letters that the model does not know, or longer than it reads are left out, and named.

Examples:
  heedful lexicon ron.model words.txt -o lexicon.txt
  heedful lexicon cmu.model words.txt --known cmu.dict --format mfa
  heedful lexicon cmu.model --text book.txt --known cmu.dict --oov --nbest 3

Formats, a line for each pronunciation:
  sherpa   of sherpa-onnx: a word and its phones
  cmudict  a word, two spaces, its phones; WORD(2) for the second pronunciation
  mfa      of the Montreal Forced Aligner: word, probability and phones, with tabs
  kaldi    lexiconp.txt: word, probability as a share of the best one, phones

With --known, pronunciations of FILE, in any of these formats, are taken as they are, and the model is asked for the
other words only.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from heedful.cli.lines import opened_output, text_lines
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
from heedful.errors import DataError, UsageError
from heedful.text.counts import counted
from heedful.text.pronunciations import LexiconFormat, Pronunciation, entry_lines, entry_of, words_of

if TYPE_CHECKING:
    from heedful.predictors.pronouncer import Pronouncer

_WINDOW: Final = 4096
_SHOWN: Final = 3
WordsPath = Annotated[
    Path | None, typer.Argument(metavar="WORDS", help="File of words, one per line.", show_default=False)
]
TextPath = Annotated[
    Path | None, typer.Option("--text", metavar="FILE", help="Text whose words are pronounced.", rich_help_panel=FILES)
]
KnownPath = Annotated[
    Path | None,
    typer.Option(
        "--known", metavar="FILE", help="Lexicon whose pronunciations are taken first.", rich_help_panel=FILES
    ),
]
Unknown = Annotated[
    bool, typer.Option("--oov", help="Write only words that --known does not have.", rich_help_panel=FILES)
]
FormatName = Annotated[
    LexiconFormat,
    typer.Option("--format", metavar="sherpa|cmudict|mfa|kaldi", help="Format of the lexicon.", rich_help_panel=FILES),
]
Number = Annotated[
    int,
    typer.Option(
        "--nbest",
        min=1,
        max=20,
        metavar="INTEGER",
        help="Largest number of pronunciations of a word.",
        rich_help_panel=FILES,
    ),
]
MinProbability = Annotated[
    float,
    typer.Option(
        min=0.0,
        max=1.0,
        metavar="FLOAT",
        help="Smallest probability of a further pronunciation, as a share of that of the best.",
        rich_help_panel=FILES,
    ),
]


def run(
    model: ModelPath,
    words: WordsPath = None,
    text: TextPath = None,
    last_column: LastColumn = "",
    target: OutputPath = None,
    known: KnownPath = None,
    oov: Unknown = False,
    output_format: FormatName = "sherpa",
    nbest: Number = 1,
    min_probability: MinProbability = 0.1,
    engine: Engine = "auto",
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a lexicon.

    Raises:
        UsageError: the options conflict.
    """
    use_threads(threads)
    if (words is None) == (text is None):
        raise UsageError("lexicon: give a file of words, or --text FILE")
    if oov and known is None:
        raise UsageError("lexicon: --oov leaves out the words of a lexicon; name it by --known FILE")
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.pronouncer import Pronouncer
    from heedful.predictors.translator import Translator

    messages = Messages(quiet)
    pronouncer = Pronouncer(load_to_run(model, engine, device, kind=Translator, last_column=last_column))
    entries = read_known(known) if known else {}
    lines = text_lines([words or text or Path()])
    listed = (word for line in lines for word in ([line.strip()] if words else words_of(line)) if word)
    unread: list[str] = []
    num_written = 0
    with opened_output(target, (words, text, known)) as file:
        for window in _windows(_once(listed, pronouncer, entries, unread)):
            forms = [form for form in window.values() if form not in entries]
            answers = iter(pronouncer.pronounce(forms, nbest, min_probability))
            for word, form in window.items():
                entry = entries[form] if form in entries else next(answers)
                if oov and form in entries:
                    continue
                if not entry:
                    unread.append(word)
                    continue
                file.write(entry_lines(form, entry[:nbest], output_format))
                num_written += 1
    messages.say(f"{counted(num_written, 'word')} written")
    if unread:
        some = ", ".join(unread[:_SHOWN]) + (", ..." if len(unread) > _SHOWN else "")
        messages.warn(f"{counted(len(unread), 'word')} left out that the model cannot pronounce: {some}")


def _once(
    listed: Iterable[str],
    pronouncer: "Pronouncer",
    entries: dict[str, tuple[Pronunciation, ...]],
    unread: list[str],
) -> Iterator[tuple[str, str]]:
    """Words with the forms that the model or the known lexicon has, each form once."""
    seen: set[str] = set()
    for word in listed:
        is_one = len(word.split()) == 1  # a lexicon divides its lines at spaces
        form = word if is_one and word in entries else pronouncer.reading(word) if is_one else ""
        if not form and word not in seen:
            unread.append(word)
        if form and form not in seen:
            yield word, form
        seen |= {word, form}


def _windows(pairs: Iterator[tuple[str, str]]) -> Iterator[dict[str, str]]:
    while window := dict(islice(pairs, _WINDOW)):
        yield window


def read_known(path: Path) -> dict[str, tuple[Pronunciation, ...]]:
    """Read the pronunciations of a lexicon by word.

    Args:
        path: file of any format.

    Raises:
        DataError: the file has none.
    """
    entries: dict[str, tuple[Pronunciation, ...]] = {}
    for line in text_lines([path]):
        if entry := entry_of(line):
            word, one = entry[0], Pronunciation(entry[1], 1.0)
            if one not in entries.get(word, ()):
                entries[word] = (*entries.get(word, ()), one)
    if not entries:
        raise DataError(f"{path}: no pronunciation; a lexicon has a word and its phones on each line")
    return entries

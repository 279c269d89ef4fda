"""Write the pronunciation lexicon of a speech program.

The model is one from letters to phones. Words are the lines of a file or, with --text, the words of a running text.
Each word is written once, in the order of its first occurrence. Case is that which the model was trained on. Words
with spaces, with letters that the model does not know, or longer than it reads are left out, and named.

Examples:
  heedful lexicon ron.model words.txt -o lexicon.txt
  heedful lexicon ron.model words.txt --format sherpa-ipa --tokens tokens.txt
  heedful lexicon cmu.model words.txt --known cmu.dict --format mfa
  heedful lexicon cmu.model --text book.txt --known cmu.dict --oov --nbest 3

Formats, a line for each pronunciation:
  sherpa      of sherpa-onnx: a word and its phones
  sherpa-ipa  of sherpa-onnx 2 for voices whose tokens are letters of the IPA, such as Piper's: a word, ||, its phones;
              the best pronunciation alone
  cmudict     a word, two spaces, its phones; WORD(2) for the second pronunciation
  mfa         of the Montreal Forced Aligner: word, probability and phones, with tabs
  kaldi       lexiconp.txt: word, probability as a share of the best one, phones

The phones are those of the model's training data; a voice speaks the ones that its tokens.txt has. With --tokens, those
that it lacks are named.

With --known, pronunciations of FILE, in any of these formats, are taken as they are, and the model is asked for the
other words only.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from heedful.cli.lines import opened_output, text_lines
from heedful.cli.messages import Messages
from heedful.cli.options import (
    FILES,
    Beam,
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
from heedful.files.collector import paused_collector
from heedful.text.counts import counted
from heedful.text.pronunciations import LexiconFormat, Pronunciation, entry_lines, entry_of, words_of

if TYPE_CHECKING:
    from heedful.predictors.pronouncer import Pronouncer

_WINDOW: Final = 4096
_SHOWN: Final = 3
_TOKEN: Final = re.compile(r"(.+)[ \t]\d+\s*")
"""Line of a voice's tokens.txt; a token may be a space."""
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
TokensPath = Annotated[
    Path | None,
    typer.Option(
        "--tokens", metavar="FILE", help="tokens.txt of a voice; phones that it lacks are named.", rich_help_panel=FILES
    ),
]
Unknown = Annotated[
    bool, typer.Option("--oov", help="Write only words that --known does not have.", rich_help_panel=FILES)
]
FormatName = Annotated[
    LexiconFormat,
    typer.Option(
        "--format",
        metavar="sherpa|sherpa-ipa|cmudict|mfa|kaldi",
        help="Format of the lexicon.",
        rich_help_panel=FILES,
    ),
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
    tokens: TokensPath = None,
    oov: Unknown = False,
    output_format: FormatName = "sherpa",
    nbest: Number = 1,
    min_probability: MinProbability = 0.1,
    beam: Beam = None,
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
    _refuse_conflicts(words, text, known, oov)
    from heedful.cli.scoring import load_to_run
    from heedful.predictors.pronouncer import Pronouncer
    from heedful.predictors.translator import Translator

    messages = Messages(quiet)
    pronouncer = Pronouncer(load_to_run(model, engine, device, kind=Translator, last_column=last_column))
    entries = read_known(known) if known else {}
    voice = _Voice(tokens, output_format == "sherpa-ipa") if tokens else None
    unread: list[str] = []
    num_written = 0
    with opened_output(target, (words, text, known, tokens)) as file:
        for window in _windows(_once(_listed(words, text), pronouncer, entries, unread)):
            forms = [form for form in window.values() if form not in entries]
            answers = iter(pronouncer.pronounce(forms, nbest, min_probability, beam or 0))
            for word, form in window.items():
                entry = entries[form] if form in entries else next(answers)
                if oov and form in entries:
                    continue
                if not entry:
                    unread.append(word)
                    continue
                file.write(entry_lines(form, entry[:nbest], output_format))
                num_written += 1
                if voice is not None:
                    voice.check(entry[: 1 if output_format == "sherpa-ipa" else nbest])
    messages.say(f"{counted(num_written, 'word')} written")
    _tell_unread(unread, messages)
    if voice is not None:
        voice.tell(messages)


def _refuse_conflicts(words: Path | None, text: Path | None, known: Path | None, oov: bool) -> None:
    if (words is None) == (text is None):
        raise UsageError("lexicon: give a file of words, or --text FILE")
    if oov and known is None:
        raise UsageError("lexicon: --oov leaves out the words of a lexicon; name it by --known FILE")


def _listed(words: Path | None, text: Path | None) -> Iterator[str]:
    """Words of a file with one on each line, or of a text."""
    lines = text_lines([words or text or Path()])
    return (word for line in lines for word in ([line.strip()] if words else words_of(line)) if word)


def _tell_unread(words: list[str], messages: Messages) -> None:
    if words:
        some = ", ".join(words[:_SHOWN]) + (", ..." if len(words) > _SHOWN else "")
        messages.warn(f"{counted(len(words), 'word')} left out that the model cannot pronounce: {some}")


@final
class _Voice:
    """Tokens of a voice, and the phones of a lexicon that are none of them."""

    def __init__(self, path: Path, is_ipa: bool) -> None:
        self._path: Final = path
        self._is_ipa: Final = is_ipa
        self._tokens: Final = read_tokens(path)
        self._lacked: Final = Counter[str]()
        """Number of words with each phone that is no token."""

    def check(self, entry: tuple[Pronunciation, ...]) -> None:
        """Take up the pronunciations of a word."""
        phones = [phone for one in entry for phone in one.phones]
        # The letters of a phone are tokens of their own in a voice of the IPA.
        self._lacked.update({*("".join(phones) if self._is_ipa else phones)} - self._tokens)

    def tell(self, messages: Messages) -> None:
        """Name the phones that the voice lacks."""
        if self._lacked:
            most = self._lacked.most_common(_SHOWN)
            some = ", ".join(f"{phone} (in {counted(number, 'word')})" for phone, number in most)
            number = counted(len(self._lacked), "phone")
            messages.warn(f"{number} that {self._path} lacks, which its voice does not speak: {some}")


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


def read_tokens(path: Path) -> set[str]:
    """Read the tokens of a voice.

    Args:
        path: tokens.txt of sherpa-onnx, with a token and its id on each line.

    Raises:
        DataError: the file has no such line.
    """
    tokens = {match[1] for match in map(_TOKEN.fullmatch, text_lines([path])) if match}
    if not tokens:
        raise DataError(f"{path}: no tokens; tokens.txt has a token and its id on each line")
    return tokens


def read_known(path: Path) -> dict[str, tuple[Pronunciation, ...]]:
    """Read the pronunciations of a lexicon by word.

    Args:
        path: file of any format.

    Raises:
        DataError: the file has none.
    """
    entries: dict[str, tuple[Pronunciation, ...]] = {}
    with paused_collector():
        for word, phones in filter(None, map(entry_of, text_lines([path]))):
            one = Pronunciation(phones, 1.0)
            others = entries.setdefault(word, (one,))
            if one not in others:
                entries[word] = (*others, one)
    if not entries:
        raise DataError(f"{path}: no pronunciation; a lexicon has a word and its phones on each line")
    return entries

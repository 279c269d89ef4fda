"""Line commands: texts from arguments, a file or standard input, and an answer to each of them in order."""

import io
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Final, Literal, TextIO, cast, final

import typer

from heedful.cli.messages import Messages, RepeatedWarning
from heedful.cli.options import FILES
from heedful.errors import DataError, UsageError
from heedful.files.atomic_write import written_in_parts
from heedful.text.quoting import visible
from heedful.text.segments import Policy

if TYPE_CHECKING:
    from heedful.text.lines import Lines

STANDARD: Final = Path("-")
PROMPT: Final = "> "
_BREAKS: Final = str.maketrans("\r\n\t\v\f\x1c\x1d\x1e\x85\u2028\u2029", " " * 11)
_END_OF_INPUT: Final = "Ctrl-Z and Enter" if os.name == "nt" else "Ctrl-D"
OutputFormat = Literal["text", "jsonl"]
LineFormat = Annotated[
    OutputFormat, typer.Option("--format", metavar="text|jsonl", help="Output format.", rich_help_panel=FILES)
]
Segments = Annotated[
    Policy,
    typer.Option(
        metavar="auto|sentence|line",
        help="Parts that are translated by themselves; auto: sentences, of lines with more than training lines have.",
        rich_help_panel=FILES,
    ),
]
Texts = Annotated[
    list[str] | None,
    typer.Argument(metavar="TEXT", help="Texts.", show_default=False),
]
InputPath = Annotated[
    Path | None,
    typer.Option(
        "--input", "-i", metavar="FILE", help="File of texts, one per line; - is standard input.", rich_help_panel=FILES
    ),
]
Answers = Callable[[list[str], int], Iterable[tuple[str, bool]]]
"""Function from successive texts and the index of the first among all: for each text the answer as it is written, line
end included, and whether the text was cut to the length that the model takes."""


def one_line(text: str) -> str:
    """Replace tabs and line breaks by spaces, so that a text is one cell of one line.

    Returns:
        The text, of the same length.
    """
    return text.translate(_BREAKS)


def require_one(texts: Sequence[str] | None, source: Path | None) -> None:
    """Refuse two sources of texts.

    Args:
        source: the file of `--input`.

    Raises:
        UsageError: both were given.
    """
    if texts and source is not None:
        raise UsageError("give texts or --input, not both")


def answer_lines(
    answers: Answers,
    texts: Sequence[str],
    source: Path | None,
    target: Path | None,
    messages: Messages,
    window_lines: int,
    max_tokens: int,
    hint: str = "Type a text and press Enter.",
    are_paths: bool = False,
    rows: Iterator[str] | None = None,
    are_whole: bool = False,
) -> None:
    """Answer all texts; on a terminal each line at once, after a prompt.

    Args:
        answers: computes and writes the answers to a window of texts.
        texts: from the command line; none = the lines of `source`.
        source: a file of lines; None or "-" is standard input.
        target: where answers go; None or "-" is standard output.
        messages: where to warn of texts that were cut and of bytes that are not UTF-8.
        window_lines: most texts that are answered together.
        max_tokens: most tokens of a text that the model takes, for the warning.
        are_paths: whether texts from the command line are paths of files.
        rows: texts of a table that is the source; None = its lines.
        are_whole: whether each text from the command line is one text, line breaks included; False = its lines are.
    """
    for text in () if are_paths else texts:
        if _is_file(text):
            messages.warn(f"{text}: taken as a text, though a file has this name; for its lines: --input {text}")
    is_prompting = not texts and source is None and sys.stdin.isatty()
    if is_prompting:
        messages.say(f"{hint} To leave: {_END_OF_INPUT}")
    cut = RepeatedWarning(messages, "lines were cut")
    with (
        _opened_input(texts, source if rows is None else Path(os.devnull)) as lines,
        opened_output(target, (source,)) as output,
    ):
        # Names of files need not be text.
        remaining = rows or (iter(texts) if texts and are_paths else _watched(lines, messages, is_prompting))
        remaining = _joined_lines(remaining, texts) if are_whole else remaining
        index = 0
        # A window at a time, so that what is answered is also written.
        while window := list(islice(remaining, 1 if is_prompting else window_lines)):
            for text, was_cut in answers(window, index):
                if was_cut:
                    cut.add(f"{lines.name if rows is None else source}:{index + 1}: cut after {max_tokens} tokens")
                output.write(text)
                index += 1
            output.flush()
    cut.close()


def _joined_lines(lines: Iterator[str], texts: Sequence[str]) -> Iterator[str]:
    """Texts of the command line, each of as many lines as it had; without any, all lines."""
    if not texts:
        yield from lines
    for text in texts:
        yield "\n".join(islice(lines, text.count("\n") + 1))


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # no path at all: too long, or with a null character
        return False


@contextmanager
def _opened_input(texts: Sequence[str], source: Path | None) -> "Generator[Lines]":
    from heedful.text.lines import read_lines
    from heedful.text.text_files import HEAD_BYTES, check_file, why_no_text

    if texts:
        # The bytes of the argument, exactly as the shell passed them.
        joined = io.BytesIO(b"".join(os.fsencode(text) + b"\n" for text in texts))
        yield read_lines(joined, "argument", bad_bytes="replace")
    elif source is None and sys.stdin.isatty() and sys.stdout.isatty():
        yield read_lines(cast(BinaryIO, _Keyboard()), "standard input", bad_bytes="replace")
    elif source is None or source == STANDARD:
        yield read_lines(_standard_input(), "standard input", bad_bytes="replace")
    else:
        if not source.exists() or source.is_dir():
            check_file(source)  # says what there is instead
        # Opened once: it may be a pipe.
        with source.open("rb") as stream:
            if source.is_file() and (reason := why_no_text(stream.peek(HEAD_BYTES)[:HEAD_BYTES])):
                raise DataError(f"{source}: {reason}")
            yield read_lines(stream, str(source), bad_bytes="replace")


def _standard_input() -> BinaryIO:
    return sys.stdin.buffer


@final
class _Keyboard(io.RawIOBase):
    """Lines typed at a prompt, with line editing and the history of this session, which is not saved."""

    def __init__(self) -> None:
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")
        try:
            import readline  # from now on, input() edits lines
        except ModuleNotFoundError:  # Windows, whose console edits lines itself
            return
        readline.set_completer(lambda text, state: None)  # otherwise the tab key completes names of files

    def readline(self, size: int | None = -1, /) -> bytes:
        try:
            return input(PROMPT).encode("utf-8", "surrogateescape") + b"\n"
        except EOFError:
            return b""


def _watched(lines: "Lines", messages: Messages, is_prompting: bool) -> Iterator[str]:
    """Lines of the input; prompts on a terminal, and warns of bytes that are not UTF-8."""
    replaced = RepeatedWarning(messages, "lines were not UTF-8")
    num_replaced = 0
    while True:
        if is_prompting and not sys.stdout.isatty():  # where results go elsewhere, so do prompts
            print(PROMPT, end="", file=sys.stderr, flush=True)
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


@final
class _Terminal(io.TextIOBase):
    """Terminal that texts of others do not steer, such as a translation that a client stored."""

    def __init__(self, stream: TextIO) -> None:
        """Wrap a stream."""
        self._stream: Final = stream

    def write(self, text: str) -> int:
        """Write a text, control characters as escapes."""
        return self._stream.write(visible(text))

    def flush(self) -> None:
        """Flush the terminal."""
        self._stream.flush()


@contextmanager
def opened_output(path: Path | None, inputs: Iterable[Path | None] = ()) -> Generator[TextIO]:
    """Open a file that is renamed to its final name once it is complete.

    Args:
        path: output file; None or "-" = standard output. Devices and pipes are written to directly.
        inputs: files that the command reads; None = no file.

    Yields:
        A text stream, UTF-8 with LF.

    Raises:
        UsageError: the file is an input or belongs to a model, or another process writes it.
        OSError: writing failed; the message names the file.
    """
    if path is None or path == STANDARD:
        yield cast(TextIO, _Terminal(sys.stdout)) if sys.stdout.isatty() else sys.stdout
        sys.stdout.flush()
        return
    refuse_overwriting(path, inputs)
    try:
        with written_in_parts(path) as stream:
            yield stream
    except OSError as error:
        # OSErrors of write calls do not name the file.
        error.filename = error.filename or (f"{path}.part" if path.is_file() or not path.exists() else str(path))
        raise


def refuse_overwriting(path: Path, inputs: Iterable[Path | None]) -> None:
    """Refuse an output file that would destroy what the command reads.

    Args:
        inputs: files that the command reads; None and missing ones are ignored.

    Raises:
        UsageError: the file is one of the inputs, or exists in a model's folder.
    """
    from heedful.engines.folder import MANIFEST

    if not path.is_file():
        return
    for each in inputs:
        if each is not None and each.is_file() and path.samefile(each):
            raise UsageError(f"{path}: read by this command; choose another output file")
    if (path.resolve().parent / MANIFEST).is_file():
        raise UsageError(f"{path}: belongs to the model in {path.resolve().parent}; choose another output file")


def text_lines(paths: Sequence[Path]) -> Iterator[str]:
    """Read the lines of text files, each opened when its turn comes.

    Args:
        paths: text files, which may be compressed.

    Yields:
        Each line, without its end.

    Raises:
        DataError: a file cannot be read.
    """
    from heedful.text.lines import open_bytes, read_lines
    from heedful.text.text_files import check_file

    for path in paths:
        check_file(path)
        with open_bytes(path) as stream:
            yield from read_lines(stream, str(path))

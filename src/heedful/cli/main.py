"""Command `heedful`: finds the command, runs it, and turns every error into one line and an exit code."""

import functools
import importlib
import inspect
import io
import itertools
import os
import pkgutil
import re
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Final, ParamSpec, TextIO

import typer

from heedful.cli.failures import explain
from heedful.cli.help import Command, Group
from heedful.cli.messages import discard_output, print_message
from heedful.config.plugins import allow_code, is_custom
from heedful.config.renamed import OldName, with_new_command
from heedful.errors import UsageError, did_you_mean
from heedful.version import __version__

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "Make a model": (
        "demo",
        "train",
        "distil",
        "calibrate",
        "correct",
        "next",
        "compare",
        "import",
        "vectors",
        "reproduce",
    ),
    "Use a model": (
        "translate",
        "classify",
        "caption",
        "answer",
        "encode",
        "evaluate",
        "align",
        "score",
        "pronounce",
        "lexicon",
    ),
    "Ship a model": ("serve", "export", "pack"),
    "Inspect": ("inspect", "check", "info", "report", "list", "doctor", "docs"),
}
"""Commands by their heading in the help; each is a module here with a function `run` and its help as docstring."""
COMMANDS: Final = tuple(itertools.chain.from_iterable(GROUPS.values()))
"""All commands."""
_DESCRIPTION: Final = """Attention sequence-to-sequence models, from text pairs to a model you own.

Begin with: heedful demo. Every command explains itself: heedful train --help"""
GREETING: Final = f"""heedful {__version__}: models with attention, from text pairs to a model you own

  heedful demo                              a model in two minutes, from generated dates
  heedful train pairs.tsv --minutes 5       a model of your own: each line a source, a tab, a target
  heedful translate pairs.model 'a text'    its output; for files -i and -o
  heedful evaluate pairs.model test.tsv     how good it is
  heedful serve pairs.model                 a page that shows what it attends to

heedful --help lists all commands, heedful COMMAND --help explains one, heedful docs is the manual."""
"""Words for somebody who types the name alone."""
_DOCSTRING: Final = re.compile(r'"""(.*?)"""', re.DOTALL)
RENAMED: Final = {"import": "import_model"}
"""Modules of commands whose names are keywords of Python."""

Parameters = ParamSpec("Parameters")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: words after `heedful`; None = those of the process.

    Returns:
        The exit code: 0 done, 1 bug, 2 bad usage, configuration or data, 3 file refused, 4 loss not finite, 5 out of
        disk, memory or device, 6 missing extra, 130 or 143 stopped by a signal, 141 the reader of the output left.
    """
    try:
        return _main([*(sys.argv[1:] if arguments is None else arguments)])
    except KeyboardInterrupt:  # before the command began, or after its end
        return 128 + signal.SIGINT
    finally:
        # Commands that compute have begun to watch for other programs; the rest have not imported the module.
        if contention := sys.modules.get("heedful.cpu.contention"):
            contention.stop_watching()


def _main(arguments: list[str]) -> int:
    _open_closed_streams()
    words, code = _without_code(arguments)
    is_debug = "--debug" in words
    _prepare_process(is_debug)
    try:
        allow_code(code)
        is_greeted = not words and "_HEEDFUL_COMPLETE" not in os.environ  # a shell that completes gives no words
        if is_greeted:
            print(GREETING)
        status = 0 if is_greeted else _run(words)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        cause = error.__cause__ if isinstance(error, _Carried) and error.__cause__ else error
        message, status, topic = explain(cause)
        if is_debug and not isinstance(cause, typer.TyperException):
            traceback.print_exception(cause)
        if message:
            print_message(f"heedful: {message}")
        if topic and sys.stderr.isatty():  # programs that read messages get one line
            print_message(f"more about this: heedful docs {topic}")
    _flush_or_give_up()
    return status


def _without_code(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split the arguments into --code options, which every command accepts anywhere, and the rest.

    Classes named by --set count too.
    """
    rest: list[str] = []
    code: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            return [*rest, word, *words], code
        if word == "--code":
            code.append(next(words, ""))
        elif word.startswith("--code="):
            code.append(word.removeprefix("--code="))
        else:
            rest.append(word)
    values = (value.removeprefix("--set=").partition("=")[2].strip("\"'") for value in rest)
    after_set = {index + 1 for index, word in enumerate(rest) if word == "--set"}
    named = [value for index, value in enumerate(values) if index in after_set or rest[index].startswith("--set=")]
    return rest, [*code, *filter(is_custom, named)]


def _run(words: Sequence[str]) -> int:
    words = with_new_command(words)
    named = next((word for word in words if not word.startswith("-")), "")
    if named and named not in COMMANDS:
        raise UsageError(f"no command {named!r}{did_you_mean(named, COMMANDS)}")
    # Only the command that runs is imported; completion needs the options of all, the help their first sentences.
    is_completing = "_HEEDFUL_COMPLETE" in os.environ
    app = _app([named] if named else COMMANDS, is_listed=not (named or is_completing))
    try:
        return int(typer.main.get_command(app).main(words, prog_name="heedful", standalone_mode=False) or 0)
    except SystemExit as ending:
        # Typer ends the process where the reader of a help text leaves.
        if isinstance(ending.__context__, BrokenPipeError):
            raise ending.__context__ from None
        raise


def _app(names: Sequence[str], is_listed: bool = False) -> typer.Typer:
    """Application with some commands; where they are only listed, none is imported."""
    app = typer.Typer(
        cls=Group,
        name="heedful",
        help=_DESCRIPTION,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        callback=_global_options,
    )
    for heading, commands in GROUPS.items():
        for name in commands:
            if name in names:
                module = RENAMED.get(name, name)
                register = app.command(name, cls=Command, help=_help_of(module), rich_help_panel=heading)
                register(_unused if is_listed else _carry(importlib.import_module(f"heedful.cli.{module}").run))
    return app


def _help_of(module: str) -> str:
    """Docstring of a command, read without importing it; also under `python -OO`, which leaves docstrings out."""
    source = pkgutil.get_data("heedful.cli", f"{module}.py") or b""
    docstring = _DOCSTRING.match(source.decode("utf-8"))
    return inspect.cleandoc(docstring[1]) if docstring else ""


def _unused() -> None:
    """Command that is listed."""


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"heedful {__version__}")
        raise typer.Exit


def _global_options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    code: Annotated[
        str,
        typer.Option(
            "--code",
            metavar="MODULE:CLASS",
            help="Allow a model to import this class from outside the package; may stand anywhere and be repeated.",
        ),
    ] = "",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print results and warnings only.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and warnings.")] = False,
) -> None:
    if quiet:  # before the command, it is the default of the same option behind it
        context.default_map = {name: {"quiet": True} for name in COMMANDS}


class _Carried(Exception):
    """Wrapper that carries an error past typer, which would otherwise end the process itself."""


def _carry(command: Callable[Parameters, None]) -> Callable[Parameters, None]:
    @functools.wraps(command)
    def run(*values: Parameters.args, **named: Parameters.kwargs) -> None:
        try:
            command(*values, **named)
        except (OSError, EOFError, KeyboardInterrupt) as error:
            raise _Carried from error

    return run


def _open_closed_streams() -> None:
    """Give a process without standard input, output or error (`<&-`, `>&-`, `2>&-`) a null device in its place.

    Otherwise `print(file=None)` would write messages into the results, and the next file opened would get the number of
    the closed stream, and with it what libraries print. Reading gives an empty input; writing results fails.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", newline="\n", closefd=False))


def _prepare_process(is_debug: bool) -> None:
    """Use UTF-8 and LF on every platform, and hide warnings unless debugging, except those of old names."""
    for stream, errors in ((sys.stdout, "replace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors=errors, newline="\n")
    if not is_debug and not sys.warnoptions:
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", OldName)
    warnings.showwarning = _show_warning


_show_usual: Final = warnings.showwarning


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning of an old name as a line, and any other as usual."""
    if issubclass(category, OldName):
        print_message(f"heedful: warning: {message}")
    else:
        _show_usual(message, category, filename, lineno, file, line)


def _flush_or_give_up() -> None:
    """Flush standard output and error; where that fails, keep Python from flushing again at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            discard_output(stream)

"""Help pages of the commands: plain text with the options in groups, wrapped to the width of the terminal.

The pages of typer itself change with its versions, and show `<float range> [x>=0]` where every other command line shows
`FLOAT`.
"""

import os
import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from heedful.config.renamed import with_new_options

if TYPE_CHECKING:
    from collections.abc import Iterator

Entry = tuple[str, str]
"""Term of a list, such as an option with its metavar, and its description."""

COMMON: Final = "Common options"
"""Group of the options that every command has, shown last."""
MOST_COLUMNS: Final = 100
_MOST_TERM: Final = 28
"""Widest term that has its description beside it, in columns; that of a wider one stands below it."""
_UNBROKEN: Final = "\N{NO-BREAK SPACE}"
"""Space at which a line does not break."""
_HEADING: Final = re.compile(r"^[A-Z][^.\n]*:$", re.MULTILINE)
_ENTRY: Final = re.compile(r"( +)(\S+(?: \S+)*)  +(\S.*)")


@final
class Command(TyperCommand):
    """Command whose help is a page of this module, and that takes old names of its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line.

        Args:
            ctx: context of the command.
            args: words behind the command.
        """
        return super().parse_args(ctx, with_new_options(self.name or "", args))

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """Write the help page.

        Args:
            ctx: context with the words before the command's options.
        """
        parameters = self.get_params(ctx)
        arguments = [each for each in parameters if isinstance(each, TyperArgument)]
        options = [each for each in parameters if isinstance(each, TyperOption) and not each.hidden]
        usage = " ".join([ctx.command_path, "[OPTIONS]", *map(_placeholder, arguments)])
        groups = {"Arguments": [(_placeholder(each), _described(each)) for each in arguments], **_grouped(options)}
        return _with_bold_headings(page(usage, self.help or "", groups, _columns()))


@final
class Group(TyperGroup):
    """The command `heedful` itself; its help lists the commands in groups."""

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        """Write the help page.

        Args:
            ctx: context with the words before the command's options.
        """
        groups: dict[str, list[Entry]] = {}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if isinstance(command, TyperCommand):
                summary = (command.help or "").split("\n\n")[0]
                groups.setdefault(command.rich_help_panel or "Commands", []).append((name, summary))
        options = [each for each in self.get_params(ctx) if isinstance(each, TyperOption) and not each.hidden]
        usage = f"{ctx.command_path} [OPTIONS] COMMAND ..."
        return _with_bold_headings(page(usage, self.help or "", {**groups, **_grouped(options)}, _columns()))


def page(usage: str, text: str, groups: Mapping[str, Sequence[Entry]], columns: int) -> str:
    """Write a help page.

    Args:
        usage: the command with placeholders of its arguments.
        text: description; in a paragraph with an indented line, lines stay lines.
        groups: entries by heading; a group without entries is left out.

    Returns:
        Lines no wider than `columns`, unless a single word is wider.

    Example:
        >>> print(page("heedful list [OPTIONS] TOPIC", "List a table.", {"Arguments": [("TOPIC", "The table.")]}, 80))
        Usage: heedful list [OPTIONS] TOPIC
        <BLANKLINE>
        List a table.
        <BLANKLINE>
        Arguments:
          TOPIC  The table.
    """
    paragraphs = [_wrapped(usage, columns, "Usage: ", " " * 7)]
    paragraphs += [_paragraph(part, columns) for part in text.strip().split("\n\n") if part]
    terms = [len(term) for entries in groups.values() for term, _ in entries]
    width = max((length for length in terms if length <= min(_MOST_TERM, columns // 3)), default=0)
    for heading, rows in groups.items():
        if rows:
            paragraphs.append("\n".join([f"{heading}:", *_listed(rows, width, columns)]))
    return "\n\n".join(paragraphs)


def _columns() -> int:
    return min(MOST_COLUMNS, max(20, shutil.get_terminal_size().columns))


def _with_bold_headings(text: str) -> str:
    # typer removes the bold where the output is no terminal.
    return text if os.environ.get("NO_COLOR") else _HEADING.sub(lambda match: typer.style(match[0], bold=True), text)


def _wrapped(text: str, columns: int, first: str = "", rest: str = "") -> str:
    lines = textwrap.wrap(
        text, columns, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines).replace(_UNBROKEN, " ")


def _paragraph(text: str, columns: int) -> str:
    """Flowing text, or the lines and lists of a paragraph with an indented line."""
    lines = text.split("\n")
    if not any(line.startswith(" ") for line in lines):
        return _wrapped(" ".join(lines), columns)
    return "\n".join(_indented(line, columns) for line in _rejoined(lines))


def _rejoined(lines: Sequence[str]) -> "Iterator[str]":
    """Lines of a list, whose entries may continue on lines with a deeper indent."""
    joined = ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if joined and _ENTRY.match(joined) and indent > len(joined) - len(joined.lstrip()):
            joined += f" {line.strip()}"
        else:
            if joined:
                yield joined
            joined = line
    yield joined


def _indented(line: str, columns: int) -> str:
    match = _ENTRY.fullmatch(line)
    if match is None:
        indent = " " * (len(line) - len(line.lstrip()))
        return _wrapped(line.strip(), columns, indent, f"{indent}    ")
    beside = line[: match.start(3)]
    return _wrapped(match[3], columns, beside, " " * len(beside))


def _listed(rows: Sequence[Entry], width: int, columns: int) -> list[str]:
    indent = " " * (width + 4)
    lines: list[str] = []
    for term, text in rows:
        if len(term) <= width:
            lines.append(_wrapped(text, columns, f"  {term.ljust(width)}  ", indent))
        else:
            lines += [f"  {term}", _wrapped(text, columns, indent, indent)]
    return lines


def _grouped(options: Iterable[TyperOption]) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {"Options": []}
    common: list[Entry] = []
    for option in options:
        heading = option.rich_help_panel or ("" if option.name == "help" else "Options")
        entries = common if heading in ("", COMMON) else groups.setdefault(heading, [])
        entries.append((_names(option), _described(option)))
    # --help is typer's own and comes last; where there are no common options it ends the only group.
    return {**groups, COMMON: common} if len(common) > 1 else {**groups, "Options": groups["Options"] + common}


def _names(option: TyperOption) -> str:
    """Names of an option, short ones first, and the metavar of its value."""
    names = ", ".join(sorted(option.opts, key=lambda name: (name.startswith("--"),)))
    names = " / ".join([names, *option.secondary_opts])
    return names if option.is_flag else f"{names} {option.metavar}"


def _placeholder(argument: TyperArgument) -> str:
    name = argument.display_name_raw
    name = name if argument.required else f"[{name}]"
    return f"{name}..." if argument.nargs != 1 else name


def _described(parameter: TyperArgument | TyperOption) -> str:
    """Description of a parameter with its default."""
    shown = parameter.show_default
    default = shown if isinstance(shown, str) else str(parameter.default) if shown else ""
    if isinstance(parameter, TyperOption) and parameter.required:
        note = "[required]"
    else:
        note = "" if default in ("", "None", "False") else f"[default: {default}]"
    return f"{parameter.help or ''} {note.replace(' ', _UNBROKEN)}".strip()

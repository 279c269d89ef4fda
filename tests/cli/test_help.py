"""Help pages: the field's metavars, groups, examples that parse, and no line wider than the terminal."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from heedful.cli.help import page
from heedful.cli.main import COMMANDS, GROUPS, _app
from tests.architecture.package import SOURCE
from tests.cli.command import heedful

GROUP = typer.main.get_command(_app(COMMANDS))
assert isinstance(GROUP, TyperGroup)
COMMAND_OBJECTS = {name: GROUP.commands[name] for name in COMMANDS}
METAVARS = re.compile(r"[A-Z][A-Z:,.=]*|[a-z0-9.-]+(\|[a-z0-9.-]+)+")
HOUSE_FORMS = re.compile(r"<[a-z]+( range)?>|<[a-z|]+>|\[[\d.]*<?=?x[<>]=|\bNone\b")


def options() -> Iterator[tuple[str, TyperOption]]:
    for name, command in [*COMMAND_OBJECTS.items(), ("heedful", GROUP)]:
        yield from ((name, each) for each in command.params if isinstance(each, TyperOption))


def choices(option: TyperOption) -> list[str]:
    return [str(each) for each in option.type_descriptor.choices or ()]


def test_every_option_with_a_value_names_it_as_the_field_does():
    for command, option in options():
        if not option.is_flag:
            assert METAVARS.fullmatch(option.metavar or ""), (command, option.opts)
            assert option.type_descriptor.annotation is not int or option.metavar == "INTEGER", (command, option.opts)
            if choices(option):
                assert option.metavar == "|".join(choices(option)), (command, option.opts)


def test_every_option_is_described_and_in_a_group_where_there_are_many():
    for command, option in options():
        assert option.hidden or (option.help or "").endswith("."), (command, option.opts)
    for command in ("train", "translate", "evaluate", "compare"):
        shown = [each for each in COMMAND_OBJECTS[command].params if isinstance(each, TyperOption) and not each.hidden]
        assert all(option.rich_help_panel for option in shown), command


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_page_has_no_form_of_typer_and_no_line_wider_than_the_terminal(
    command: str, columns: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = heedful(*command.split(), "--help").out.split("\n")
    assert [line for line in lines if HOUSE_FORMS.search(line.replace("<unk>", ""))] == []
    assert [line for line in lines if len(line) > columns] == []
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize(
    "form", ["<float range> [x>=0]", "<bool>", "<list[Path]>".replace("list[Path]", "path"), "[0.0<=x<=1.0]"]
)
def test_the_forms_of_typer_are_recognised(form: str):
    assert HOUSE_FORMS.search(form)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_of_every_command_parse(command: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = heedful(command, "--help").out
    examples = [line.strip() for line in shown.split("\n") if line.startswith(f"  heedful {command}")]
    assert examples, "no example in the help"
    for example in examples:
        words = shlex.split(example.partition(" < ")[0])[2:]
        context = COMMAND_OBJECTS[command].make_context(command, words)
        assert context.params, example


def test_an_example_with_a_wrong_option_does_not_parse():
    with pytest.raises(Exception, match="--bem"):
        COMMAND_OBJECTS["translate"].make_context("translate", ["m", "--bem", "3"])


def test_commands_are_in_groups():
    shown = heedful("--help").out
    positions = [shown.index(f"\n{heading}:\n") for heading in GROUPS]
    assert positions == sorted(positions)
    for position, names in zip(positions, GROUPS.values(), strict=True):
        assert all(shown.index(f"\n  {name} ") > position for name in names)


def test_arguments_are_as_in_other_manuals():
    assert heedful("translate", "--help").out.startswith("Usage: heedful translate [OPTIONS] MODEL [TEXT]...\n")
    assert heedful("export", "--help").out.startswith("Usage: heedful export [OPTIONS] MODEL [OUT]\n")


def test_a_default_is_shown_unless_it_says_nothing():
    out = heedful("train", "--help").out
    assert "[default: from file names]" in out
    assert re.search(r"--minutes FLOAT .*\n?.*\[default: 0\]", out)
    assert "default: None" not in out
    assert "default: False" not in out


def test_lists_in_a_description_keep_their_columns():
    text = "Output:\n  text   " + "word " * 20 + "\n  jsonl  an object:\n         all of this"
    assert page("x", text, {}, 40).split("\n")[2:] == [
        "Output:",
        "  text   word word word word word word",
        *["         word word word word word word"] * 2,
        "         word word",
        "  jsonl  an object: all of this",
    ]


def test_headings_are_bold_on_a_terminal_that_has_colours(monkeypatch: pytest.MonkeyPatch):
    command = COMMAND_OBJECTS["list"]
    context = command.make_context("list", ["scores"])
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1mArguments:\x1b[0m\n" in command.get_help(context)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in command.get_help(context)


def test_arguments_have_metavars_too():
    for name, command in COMMAND_OBJECTS.items():
        for each in command.params:
            if isinstance(each, TyperArgument):
                assert re.fullmatch("[A-Z]+", each.metavar or ""), (name, each.name)


def test_help_stays_where_python_leaves_docstrings_out():
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    for words in (("--help",), ("translate", "--help")):
        pages = [
            subprocess.run(
                [sys.executable, *flags, "-m", "heedful", *words], env=environment, capture_output=True
            ).stdout
            for flags in ((), ("-OO",))
        ]
        assert len(pages[0]) > 1000
        assert pages[0] == pages[1]


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys\nfrom heedful.cli.main import COMMANDS, RENAMED, main\nmain(['--help'])\n"
        "modules = {f'heedful.cli.{RENAMED.get(name, name)}' for name in COMMANDS}\n"
        "print(sorted((modules | {'numpy', 'pydantic'}) & sys.modules.keys()), file=sys.stderr)"
    )
    for flags in ([], ["-OO"]):
        done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True)
        assert (done.stderr, done.stdout) == ("[]\n", heedful("--help").out)
    for name, command in COMMAND_OBJECTS.items():
        first = (command.help or "").partition("\n")[0]
        assert first.split(":")[0].split(".")[0][:30] in done.stdout, name

"""Public names, commands, options and settings stay: those of `public.txt` are there, or have a deprecation.

After an addition, `HEEDFUL_PUBLIC=write python -m pytest tests/architecture/test_public.py` adds it to the list. A line
leaves the list by hand, in the major version that takes its name away.
"""

import importlib
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from typing_extensions import deprecated

from heedful.cli.main import COMMANDS
from heedful.cli.settings_reference import all_settings
from heedful.config import renamed
from tests.architecture.package import ROOT
from tests.blocks import options

LIST: Final = Path(__file__).with_name("public.txt")
"""Everything public, a line each, sorted."""


@pytest.fixture(scope="module")
def reference() -> Iterator[Any]:
    """The module that writes the pages of the reference."""
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_reference")
    sys.path.remove(str(ROOT / "docs"))


def members(value: Any) -> set[str]:
    """Public methods, properties and fields of a class, inherited ones of ours included."""
    kinds = value.__mro__ if isinstance(value, type) else ()
    own = (kind for kind in kinds if kind.__module__.partition(".")[0] == "heedful")
    names = {name for kind in own for name in (*vars(kind), *vars(kind).get("__annotations__", ()))}
    return {name for name in names if not name.startswith("_") and name != "model_config"}


def python_names(reference: Any) -> dict[str, Any]:
    """Public names of Python with what they stand for, and their members."""
    found: dict[str, Any] = {}
    for module in (*reference.PUBLIC, *reference.PARTS):
        loaded = importlib.import_module(module)
        for name in reference.public_names(module):
            value = getattr(loaded, name)
            found[f"{module}.{name}"] = value
            found |= {f"{module}.{name}.{member}": getattr(value, member, None) for member in members(value)}
    return found


def public(reference: Any) -> set[str]:
    """Lines of everything that is public now."""
    return {
        *(f"python {name}" for name in python_names(reference)),
        *(f"command {name}" for name in COMMANDS),
        *(f"option {name} {option}" for name in COMMANDS for option in options(name) if option.startswith("-")),
        *(f"setting {line.key}" for line in all_settings()),
    }


def old() -> set[str]:
    """Lines of what is taken by its old name."""
    return {
        *(f"command {name}" for name in renamed.COMMANDS),
        *(f"option {command} {option}" for command, table in renamed.OPTIONS.items() for option in table),
        *(f"setting {key}" for key in renamed.SETTINGS),
    }


def faults(listed: Collection[str], now: Collection[str], taken: Collection[str]) -> list[str]:
    """Lines that were public and have gone without notice, and those that are not in the list yet."""
    gone = [f"{line}: has gone; see heedful.config.renamed" for line in listed if line not in (*now, *taken)]
    new = [f"{line}: not in {LIST.name}; HEEDFUL_PUBLIC=write adds it" for line in now if line not in listed]
    return sorted(gone + new)


def deprecated_names(names: Mapping[str, Any]) -> list[str]:
    """Last parts of all names that warn: of Python, of options, of settings, of commands."""
    python = [name for name, value in names.items() if hasattr(value, "__deprecated__")]
    return sorted({*(name.rpartition(".")[2] for name in python), *(line.split()[-1] for line in old())})


def test_nothing_public_has_gone(reference: Any):
    now = public(reference)
    listed = LIST.read_text("utf-8").splitlines() if LIST.is_file() else []
    if os.environ.get("HEEDFUL_PUBLIC") == "write":
        listed = sorted({*listed, *now})
        LIST.write_text("".join(f"{line}\n" for line in listed), "utf-8", newline="\n")
    assert listed == sorted({*listed})
    assert faults({*listed}, now, old()) == []
    assert len(listed) > 1500


def test_everything_deprecated_is_in_the_changelog(reference: Any):
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert [name for name in deprecated_names(python_names(reference)) if f"`{name}`" not in changelog] == []


def test_what_has_gone_and_what_is_new_is_found():
    listed = {"command list", "option list --json", "setting search.beam", "python heedful.load"}
    now = {"command list", "option list --as-json", "setting search.width", "python heedful.open"}
    assert [line.partition(":")[0] for line in faults(listed, now, set())] == [
        "option list --as-json",
        "option list --json",
        "python heedful.load",
        "python heedful.open",
        "setting search.beam",
        "setting search.width",
    ]
    assert faults({"option list --json"}, set(), {"option list --json"}) == []


def test_renamed_options_settings_and_commands_are_not_missed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(renamed.OPTIONS, "list", {"--as-json": "--json"})
    monkeypatch.setitem(renamed.SETTINGS, "search.width", "search.beam")
    monkeypatch.setitem(renamed.COMMANDS, "tables", "list")
    assert old() == {"option list --as-json", "setting search.width", "command tables"}
    assert deprecated_names({}) == ["--as-json", "search.width", "tables"]


def test_a_deprecated_function_warns_and_is_found():
    @deprecated("use heedful.load", category=FutureWarning)
    def open_model() -> int:
        return 1

    with pytest.warns(FutureWarning, match=r"use heedful\.load"):
        assert open_model() == 1  # pyright: ignore[reportDeprecated]
    names = {"heedful.open_model": open_model, "heedful.load": len}  # pyright: ignore[reportDeprecated]
    assert deprecated_names(names) == ["open_model"]

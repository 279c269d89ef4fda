"""Old names of settings, options and commands: taken with a warning; files that heedful wrote are taken in silence."""

import warnings
from pathlib import Path

import pytest

from heedful.config import renamed
from heedful.config.base import read_toml
from heedful.config.renamed import OldName, with_new_keys
from heedful.errors import ConfigError
from heedful.runs.request import merged_settings
from tests.cli.command import heedful

OLD = "is now search.beam; the old name goes in the next major version"


@pytest.fixture
def _old_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(renamed.SETTINGS, "decoding.width", "search.beam")


@pytest.mark.usefixtures("_old_setting")
def test_an_old_setting_is_taken_with_a_warning(tmp_path: Path):
    file = tmp_path / "settings.toml"
    file.write_text("[decoding]\nwidth = 3\n[search]\nnbest = 2\n", "utf-8")
    with pytest.warns(OldName, match=f"decoding.width {OLD}"):
        assert merged_settings(file) == {"search": {"nbest": 2, "beam": 3}}
    with pytest.warns(FutureWarning, match=OLD):
        assert merged_settings(overrides=["decoding.width=4"]) == {"search": {"beam": 4}}
    with pytest.warns(OldName, match=OLD):
        assert merged_settings(options={"decoding.width": 5}) == {"search": {"beam": 5}}


@pytest.mark.usefixtures("_old_setting")
def test_a_file_of_ours_is_read_in_silence(tmp_path: Path):
    file = tmp_path / "experiment.toml"
    file.write_text("[decoding]\nwidth = 3\n", "utf-8")
    assert read_toml(file)["search"] == {"beam": 3}


@pytest.mark.usefixtures("_old_setting")
def test_both_names_of_a_setting_are_refused():
    with pytest.raises(ConfigError, match=r"decoding.width: is now search.beam, which is given too"):
        with_new_keys({"decoding": {"width": 3}, "search": {"beam": 4}})


@pytest.mark.usefixtures("_old_setting")
@pytest.mark.parametrize("tree", [{"decoding": 3}, {"decoding": {}}, {"search": {"beam": 4}}, {}])
def test_other_settings_stay(tree: dict[str, object]):
    assert with_new_keys(tree) == tree


def test_a_table_keeps_its_other_keys_and_the_given_tree_is_not_changed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(renamed.SETTINGS, "search.width", "search.beam")
    given = {"search": {"width": 3, "nbest": 2}}
    assert with_new_keys(given) == {"search": {"nbest": 2, "beam": 3}}
    assert given == {"search": {"width": 3, "nbest": 2}}


@pytest.mark.parametrize("words", [["--machine", "cpu", "scores"], ["scores", "--machine=cpu"]])
def test_an_old_option_is_taken_with_a_note(monkeypatch: pytest.MonkeyPatch, words: list[str]):
    monkeypatch.setitem(renamed.OPTIONS, "list", {"--machine": "--device"})
    code, out, err = heedful("list", *words)
    assert (code, out) == heedful("list", "scores", "--device", "cpu")[:2]
    assert err == "heedful: warning: list --machine is now --device; the old name goes in the next major version\n"


def test_an_old_option_with_its_value_and_words_that_are_no_options(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(renamed.OPTIONS, "translate", {"--width": "--beam"})
    with pytest.warns(OldName):
        changed = renamed.with_new_options("translate", ["m", "--width=3", "--", "--width"])
    assert changed == ["m", "--beam=3", "--", "--width"]
    assert renamed.with_new_options("score", ["--width"]) == ["--width"]


def test_an_old_command_is_taken_with_a_note(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(renamed.COMMANDS, "tables", "list")
    code, out, err = heedful("tables", "scores")
    assert (code, out) == heedful("list", "scores")[:2]
    assert err.count("\n") == 1
    assert "heedful tables is now heedful list" in err


@pytest.mark.usefixtures("_old_setting")
def test_an_old_setting_of_a_command_is_told_once(tmp_path: Path):
    done = heedful("train", tmp_path / "none.tsv", "--set", "decoding.width=3")
    assert done.code == 2
    assert done.err.count(f"heedful: warning: decoding.width {OLD}") == 1


def test_other_warnings_stay_hidden(monkeypatch: pytest.MonkeyPatch):
    from heedful.cli import list as command

    monkeypatch.setattr(command, "run", lambda: warnings.warn("of a library", FutureWarning, stacklevel=2))
    assert heedful("list") == (0, "", "")

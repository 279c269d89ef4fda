"""The fonts chosen draw the whole text, and where they cannot, the note says so; nothing here raises."""

import re
import sys
from pathlib import Path

import pytest

from heedful.errors import MissingExtra, install_command
from heedful.inspection.fonts import BASE_FAMILY, choose_fonts
from tests.inspection.drawn_fonts import install_only, make_font


def test_latin_greek_and_cyrillic_need_no_other_font(monkeypatch: pytest.MonkeyPatch):
    install_only(monkeypatch)
    fonts = choose_fonts(["Straße", "λόγος", "слово", "␣◌…#"])
    assert fonts.families == (BASE_FAMILY,)
    assert (fonts.missing, fonts.note) == (frozenset(), "")


def test_an_installed_font_is_found_for_what_the_own_font_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    install_only(monkeypatch, make_font(tmp_path / "han.ttf", "Test Han", "注意力"))
    fonts = choose_fonts("注意 a 力")
    assert fonts.families == (BASE_FAMILY, "Test Han")
    assert fonts.note == ""


def test_a_preferred_family_comes_first_and_no_more_are_taken_than_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    fonts = [
        make_font(tmp_path / "a.ttf", "A Font With One", "力"),
        make_font(tmp_path / "b.ttf", "B Font With All", "注意力机"),
        make_font(tmp_path / "c.ttf", "SimHei", "注意"),
    ]
    install_only(monkeypatch, *fonts)
    assert choose_fonts("注意").families == (BASE_FAMILY, "SimHei")
    assert choose_fonts("注意力机").families == (BASE_FAMILY, "SimHei", "B Font With All")


def test_a_font_installed_since_matplotlib_first_ran_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    damaged = tmp_path / "damaged.ttf"
    damaged.write_bytes(b"\0\1\0\0 no font")
    install_only(monkeypatch, since=[damaged, make_font(tmp_path / "new.ttf", "Test New", "注")])
    assert choose_fonts("注").families == (BASE_FAMILY, "Test New")


@pytest.mark.parametrize(
    ("text", "named"),
    [("二〇年", ("〇 (U+3007) and 2 other", "fonts-noto-cjk")), ("द", ("द (U+0926), so", "fonts-noto-core"))],
)
def test_the_note_names_what_is_missing_and_what_to_install(
    monkeypatch: pytest.MonkeyPatch, text: str, named: tuple[str, str]
):
    install_only(monkeypatch)
    fonts = choose_fonts(text)
    assert fonts.families == (BASE_FAMILY,)
    assert fonts.missing == set(text)
    assert all(part in fonts.note for part in named), fonts.note
    assert "\n" not in fonts.note


def test_without_matplotlib_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=re.escape(install_command("train"))):
        choose_fonts("a")

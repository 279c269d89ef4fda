"""Links and sizes of the built site are checked without a browser."""

from pathlib import Path

import pytest

from tests.prove import prove_site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(prove_site, "SITE", tmp_path)
    monkeypatch.setattr(prove_site, "shown", lambda pages: pytest.fail("a browser was asked"))
    for number in range(100):
        (tmp_path / f"{number}.html").write_text('<p id="top"><a href="0.html#top">first</a>', encoding="utf-8")
    return tmp_path


def test_good_pages_are_taken(site: Path):
    assert prove_site.main("--links") == 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('<a href="none.html">', "1.html: no none.html"),
        ('<img src="none.png">', "1.html: no none.png"),
        ('<a href="0.html#none">', "1.html: no place 0.html#none"),
        ("x" * (prove_site.LARGEST + 1), "1.html: large"),
    ],
)
def test_faults_are_named(site: Path, text: str, complaint: str, capsys: pytest.CaptureFixture[str]):
    (site / "1.html").write_text(text, encoding="utf-8")
    assert prove_site.main("--links") == 1
    assert capsys.readouterr().out == f"{complaint}\n100 pages, 1 complaints\n"


def test_a_site_of_few_pages_is_no_site(site: Path):
    (site / "99.html").unlink()
    assert prove_site.main("--links") == 1

"""`heedful translate` with a document."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from heedful.documents.table import FORMATS
from heedful.text.tagged_text import TaggedText
from tests.cli.command import heedful
from tests.cli.conftest import Trained
from tests.documents import made


def test_a_document_is_translated_into_a_document(trained: Trained, tmp_path: Path):
    pytest.importorskip("lxml")
    source, target = tmp_path / "in.docx", tmp_path / "out.docx"
    source.write_bytes(made.word())
    done = heedful("translate", trained.model, source, "-o", target)
    assert (done.code, done.out, done.err) == (0, "", f"{target}: 5 passages translated\n")
    before, after = (FORMATS[".docx"](path.read_bytes(), 10**7).passages for path in (source, target))
    outputs = [heedful("translate", trained.model, each.text).out.strip() for each in before]
    assert [each.text.strip() for each in after] == outputs
    assert heedful("translate", trained.model, "-i", source, "-o", target).code == 0


def test_subtitles_are_written_in_the_encoding_that_they_were_in(trained: Trained, tmp_path: Path):
    source, target = tmp_path / "in.srt", tmp_path / "out.srt"
    source.write_bytes(
        "1\r\n00:00:01,000 --> 00:00:02,500\r\nabc\r\n\r\n2\r\n0:3 --> 0:4\r\nfür die Größe „é“\r\n".encode("cp1252")
    )
    done = heedful("translate", trained.model, source, "-o", target)
    told, written = done.err.splitlines()
    assert told == f"{source}: read as CP1252, and written in it where it has the letters, else in UTF-8"
    assert written == f"{target}: 1 passage translated"
    assert target.read_bytes().startswith(b"1\r\n00:00:01,000 --> 00:00:02,500\r\n")
    assert target.read_bytes().decode("cp1252").count("\r\n") == 7


def test_what_is_no_document_is_refused(trained: Trained, tmp_path: Path):
    page, other = tmp_path / "a.html", tmp_path / "a.pdf"
    page.write_bytes(b"<p>abc")
    other.write_bytes(b"x")
    strange = tmp_path / "a.resx"
    strange.write_bytes(b"<root/>")
    broken = tmp_path / "b.docx"
    broken.write_bytes(b"x")
    for arguments, message, code in (
        ((other, "-o", tmp_path / "b.pdf"), "files of the format .pdf are not read; read are .txt, .html, ", 2),
        ((strange, "-o", tmp_path / "b.resx"), "files of the format .resx are not read; read are .txt", 2),
        ((page,), "a document is written to a file; add -o a.translated.html", 2),
        ((page, "-o", tmp_path / "b.txt"), "give a name that ends in .html", 2),
        ((page, "-o", page), "read by this command", 2),
        ((page, "-o", tmp_path / "b.html", "--nbest", "2"), "a document has one output", 2),
        ((broken, "-o", tmp_path / "c.docx"), "b.docx: not a document of this kind", 2),
        ((tmp_path / "none.docx", "-o", tmp_path / "c.docx"), "none.docx: no such file", 2),
    ):
        done = heedful("translate", trained.model, *arguments)
        assert (done.code, len(done.errors)) == (code, 1), done.err
        assert message in done.errors[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "a.pdf", "a.resx", "b.docx"]


def test_passages_without_a_translation_are_told(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    source, target = tmp_path / "a.md", tmp_path / "b.md"
    source.write_text("abc\n\nfed\n\nbad\n", encoding="utf-8")

    def faulty(_: object, passages: Sequence[TaggedText], **settings: object) -> Iterator[tuple[TaggedText, object]]:
        del settings
        return ((one, SimpleNamespace(was_cut=False, fault="loop" * (one.text != "fed"), lost=())) for one in passages)

    monkeypatch.setattr("heedful.predictors.tagged.translate_tagged", faulty)
    done = heedful("translate", trained.model, source, "-o", target)
    assert done.code == 0
    assert "no translation, only a fault, of 2 passages; the source stands there\n" in done.err

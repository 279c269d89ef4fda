"""Electronic books."""

import io
import zipfile
from pathlib import Path

import pytest

from heedful.documents.epub import EpubFile
from heedful.errors import DataError
from heedful.text.tagged_text import TaggedText
from tests.documents import made


def test_chapters_and_contents_are_translated(tmp_path: Path):
    epub = pytest.importorskip("ebooklib.epub")
    book = epub.EpubBook()
    book.set_identifier("i")
    book.set_title("title")
    book.set_language("de")
    chapter = epub.EpubHtml(title="chapter", file_name="c.xhtml")
    chapter.content = '<p>a <b>red</b> dog.<img src="x.png" alt=""/></p><script src="x"/><p>end</p>'
    book.add_item(chapter)
    book.toc = (chapter,)
    for item in (epub.EpubNcx(), epub.EpubNav()):
        book.add_item(item)
    book.spine = ["nav", chapter]
    epub.write_epub(tmp_path / "a.epub", book)
    document = EpubFile((tmp_path / "a.epub").read_bytes(), 10_000_000)
    outputs = [TaggedText(each.text.upper(), each.tags) for each in document.passages]
    (tmp_path / "b.epub").write_bytes(document.write(outputs))
    written = epub.read_epub(tmp_path / "b.epub")
    content = written.get_item_with_href("c.xhtml").content.decode()
    assert '<p>A <b>RED</b> DOG.<img src="x.png" alt=""/></p>' in content
    assert "<p>END</p>" in content
    assert [entry.title for entry in written.toc] == ["CHAPTER"]
    assert written.title == "TITLE"
    assert written.get_metadata("DC", "identifier")[0][0] == "i"


def test_only_titles_of_a_package_are_translated():
    package = (
        '<?xml version="1.0"?>\n<package><metadata xmlns:dc="x"><dc:title id="t">ein &amp; hund</dc:title>\n'
        '<dc:creator>ein mann</dc:creator><meta property="title-type">main</meta></metadata>'
        "<manifest><item/></manifest><guide><reference title='x'/></guide></package>"
    )
    content = made.archive({"a.opf": package.encode(), "b.opf": b"\xff\xfe<\0", "c.xhtml": b"<p>a</p>"})
    document = EpubFile(content, 10_000_000)
    assert [each.text for each in document.passages] == ["ein & hund", "a"]
    written = document.write([TaggedText(each.text.upper(), each.tags) for each in document.passages])
    with zipfile.ZipFile(io.BytesIO(written)) as archive:
        assert archive.read("a.opf").decode() == package.replace("ein &amp; hund", "EIN &amp; HUND")
        assert archive.read("b.opf") == b"\xff\xfe<\0"


def test_other_files_are_refused():
    for content, message in ((b"x", "not a document"), (made.archive({"a.txt": b"x"}), "it has no chapters")):
        with pytest.raises(DataError, match=message):
            EpubFile(content, 1000)

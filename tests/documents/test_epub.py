"""Electronic books."""

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


def test_other_files_are_refused():
    for content, message in ((b"x", "not a document"), (made.archive({"a.txt": b"x"}), "it has no chapters")):
        with pytest.raises(DataError, match=message):
            EpubFile(content, 1000)

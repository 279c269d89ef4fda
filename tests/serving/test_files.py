"""Files that are uploaded, translated and downloaded."""

from collections.abc import Callable
from pathlib import Path, PurePath

import pytest

from heedful.documents.table import FORMATS
from heedful.serving.files import MOST_FILES, Downloads
from tests.documents import made
from tests.serving.reversing import serve

SUBTITLES = b"1\n00:00:01,000 --> 00:00:02,500\nGood\nday.\n"


@pytest.mark.parametrize(
    ("ending", "make"), [(".docx", made.word), (".odt", made.open_text), (".srt", lambda: SUBTITLES)]
)
def test_a_file_is_translated_and_downloaded(ending: str, make: Callable[[], bytes]):
    client = serve()
    content = make()
    answer = client.post(
        "/translate_file", data={"source": "de", "target": "en"}, files={"file": (f"my file{ending}", content)}
    )
    assert answer.status_code == 200, answer.text
    address = answer.json()["translatedFileUrl"]
    assert PurePath(address).name == f"my_file_en{ending}"
    download = client.get(address)
    first = FORMATS[ending](content, 10**7).passages[0].text
    assert FORMATS[ending](download.content, 10**7).passages[0].text == first[::-1]


def test_a_format_that_is_not_read_is_refused_with_those_that_are():
    answer = serve().post("/translate_file", data={"source": "de", "target": "en"}, files={"file": ("a.pdf", b"x")})
    assert answer.status_code == 400
    assert "read are .txt, .html" in answer.json()["error"]


def test_many_files_of_one_client_take_no_file_of_another():
    downloads = Downloads()
    theirs = [downloads.add("a.txt", b"a", "other"), downloads.add("b.txt", b"b", "another")]
    ours = [downloads.add("c.txt", b"c", "one") for _ in range(3 * MOST_FILES)]
    assert all(downloads.find(token) for token in theirs)
    kept = [token for token in ours if downloads.find(token)]
    assert kept == ours[-(MOST_FILES - 2) :]
    folder = Path(downloads.find(theirs[0]).path).parent  # type: ignore[union-attr]
    assert len([*folder.iterdir()]) == MOST_FILES
    downloads._folder.cleanup()

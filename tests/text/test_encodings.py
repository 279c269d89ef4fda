"""Encodings are guessed well enough to print the right command."""

from pathlib import Path

import pytest

from heedful.text.encodings import explain_bad_byte, guess_encoding, is_mostly_utf8

CHINESE = "我们今天去学校，老师说你们好吗？\n"
SAMPLES = {
    "GB18030": CHINESE,
    "BIG5": "我們今天去學校，老師說你們好嗎？\n",
    "SHIFT_JIS": "今日は学校に行きました。先生は元気です。\n",
    "EUC-JP": "今日は学校に行きました。先生は元気です。\n",
    "EUC-KR": "오늘 우리는 학교에 갑니다.\n",
    "CP1251": "Сегодня мы идём в школу.\n",
    "ISO-8859-1": "Schöne Grüße, à bientôt, ¿dónde está?\n",
    "CP1252": "„Schöne Grüße“ – sagte er…\n",
    "UTF-16": CHINESE,
    "UTF-32": "plain\n",
    "UTF-16LE": "plain words\n",
    "UTF-16BE": "plain words\n",
}


@pytest.mark.parametrize("encoding", SAMPLES)
@pytest.mark.parametrize("repeats", [1, 40])
def test_an_encoding_is_guessed(encoding: str, repeats: int):
    assert guess_encoding((SAMPLES[encoding] * repeats).encode(encoding.lower())) == encoding


@pytest.mark.parametrize("encoding", ["GB18030", "BIG5", "SHIFT_JIS", "EUC-JP", "EUC-KR"])
def test_a_sample_may_end_inside_a_character(encoding: str):
    data = (SAMPLES[encoding] * 40).encode(encoding.lower())
    assert {guess_encoding(data[:-cut]) for cut in range(1, 8)} == {encoding}


def test_a_few_nul_are_not_utf16_where_that_matters():
    assert guess_encoding(b"ab\tc\0d", nul_share=0.7) == "ISO-8859-1"
    assert guess_encoding("你好 ab".encode("utf-16-le")) == "UTF-16LE"


def test_damaged_utf8_is_told_from_another_encoding():
    assert is_mostly_utf8(CHINESE.encode() + b"\xff")
    assert not is_mostly_utf8(CHINESE.encode("gb18030"))
    assert not is_mostly_utf8("für".encode("latin-1"))


def test_commands_are_quoted_and_fit_the_file(tmp_path: Path):
    path = tmp_path / "my file.txt"
    path.write_bytes(b"f\xfcr")
    assert explain_bad_byte(b"f\xfcr", 1, False, path) == (
        "byte 0xFC is not UTF-8; the file looks like ISO-8859-1; convert it: "
        f"iconv -f ISO-8859-1 -t UTF-8 '{path}' > '{path}.utf8'"
    )
    packed = tmp_path / "a.gz"
    packed.write_bytes(b"\x1f\x8b")
    assert explain_bad_byte(b"f\xfcr", 1, False, packed).endswith(
        f"zcat {packed} | iconv -f ISO-8859-1 -t UTF-8 > {tmp_path / 'a.utf8'}"
    )


def test_one_bad_byte_in_utf8_is_not_called_another_encoding():
    said = explain_bad_byte(b"f\xfcr", 1, True, None)
    assert (
        said
        == "byte 0xFC is not UTF-8, though the rest is; mend the line, or drop such bytes: iconv -c -f UTF-8 -t UTF-8"
    )

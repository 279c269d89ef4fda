"""Signs of damage are seen, and sound text shows none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.damage_signs import find_signs, has_mojibake

SOUND = [
    "Plain text, with a tab\tand 100 % of 3 < 5 & 7 > 2.",
    "Schöne Grüße – „ja“, sagte er … «café» ÀÉÎÕÜ IRMÃ À",
    "Ελληνικά, русский, العربية, עברית",
    "我们今天去学校，“你好”——他说。",
    "가나다 日本語のテスト ไทย हिन्दी",
    "emoji 👩‍👩‍👧 and ZWNJ می‌خواهم",
    "Ngôn ngữ tiếng Việt: Â Ă Đ Ê Ô Ơ Ư",
    "L’été à Rémi: «É»",
]


@pytest.mark.parametrize("text", SOUND)
def test_sound_text_has_no_signs(text: str):
    assert list(find_signs(text)) == []


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("a\nb", "line break"),
        ("a\rb", "control"),
        ("a\x7fb", "control"),
        ("a\x85b", "control"),
        ("a\u2028b", "control"),
        ("a &amp; b", "markup"),
        ("a &#228; b", "markup"),
        ("a<br/>b", "markup"),
        ("a\u202eb", "bidirectional"),
        ("a\u200fb", "bidirectional"),
        ("a\u200bb", "invisible"),
        ("a\u00adb", "invisible"),
        ("a\ue000b", "private use"),
        ("a\ufffdb", "replacement"),
        ("fÃ¼r", "mojibake"),
        ("e\u0301", "decomposed"),
    ],
)
def test_a_sign_is_seen(text: str, sign: str):
    assert list(find_signs(text)) == [sign]


@pytest.mark.parametrize(
    "text", ["für", "Fußgängerübergang", "“quoted”", "don’t – wait", "русский", "你好世界", "Ελληνικά"]
)
@pytest.mark.parametrize("codec", ["cp1252", "latin-1"])
def test_mojibake_of_real_words_is_seen(text: str, codec: str):
    damaged = "".join(
        bytes([byte]).decode(codec, "ignore") or bytes([byte]).decode("latin-1") for byte in text.encode()
    )
    if codec == "latin-1" and ("“" in text or "–" in text):
        # The dash and the quotes become control characters, which are seen as such.
        assert "control" in set(find_signs(damaged))
    else:
        assert has_mojibake(damaged)


@given(st.text())
def test_any_text_can_be_looked_at(text: str):
    list(find_signs(text))

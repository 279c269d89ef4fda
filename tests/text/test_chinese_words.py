"""Words of Chinese text."""

import time
from itertools import pairwise

import pytest

from heedful.text import pronunciations
from heedful.text.chinese_words import chinese_word_spans, has_rows
from heedful.text.pronunciations import words_of


def test_words_are_told_apart():
    pytest.importorskip("jieba")
    text = "他在重庆银行，A股上涨3%。用iPhone拍照 don't"
    words = ["他", "在", "重庆", "银行", "A", "股", "上涨", "用", "iPhone", "拍照", "don't"]
    assert words_of(text) == words


def test_all_characters_of_a_long_row_are_in_words():
    pytest.importorskip("jieba")
    text = "中华人民共和国" * 3000
    spans = chinese_word_spans(text, 5, len(text))
    assert spans[0][0] == 5
    assert spans[-1][1] == len(text)
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_time_is_linear_in_one_character_again_and_again():
    pytest.importorskip("jieba")
    words_of("的" * 10)  # reads the dictionary
    times: list[float] = []
    for number in (2_000, 16_000):
        began = time.process_time()
        assert "".join(words_of("的" * number)) == "的" * number
        times.append(time.process_time() - began)
    assert times[1] < 25 * times[0]  # eight times as long; by jieba alone sixty-four times


def test_without_jieba_a_row_is_a_word(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pronunciations, "tells_words_apart", lambda: False)
    assert words_of("他在重庆，ok") == ["他在重庆", "ok"]
    assert has_rows("他在")
    assert not has_rows("他 a 在")

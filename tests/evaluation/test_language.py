import pytest

from heedful.errors import UsageError
from heedful.evaluation.language import choose_tokenizer, text_lengths

ENGLISH = ["It is raining today."]
CHINESE = ["今天下雨。", "我用 Python 写程序"]
JAPANESE = ["今日は雨が降っています。", "私は東京大学の学生です"]
THAI = ["วันนี้ฝนตก"]
KOREAN = ["오늘은 비가 온다"]


@pytest.mark.parametrize("code", ["zh", "zh-Hant", "zh_CN", "ZH", "zho_Hans", "chi", "cmn", "yue"])
def test_chinese_codes(code: str):
    assert choose_tokenizer(code, ENGLISH).tokenizer == "zh"


@pytest.mark.parametrize("code", ["ja", "ja-JP", "jpn", "th", "km", "khm_Khmr", "lo", "my"])
def test_codes_of_languages_without_spaces(code: str):
    assert choose_tokenizer(code, CHINESE).tokenizer == "char"


@pytest.mark.parametrize("code", ["de", "en", "", "ko", "zha", "sv"])
def test_other_codes(code: str):
    assert choose_tokenizer(code, ENGLISH).tokenizer == "13a"


@pytest.mark.parametrize("code", ["", "en"])
@pytest.mark.parametrize(
    ("texts", "tokenizer"),
    [
        (ENGLISH, "13a"),
        (KOREAN, "13a"),
        (CHINESE, "zh"),
        (["我 爱 你"], "zh"),
        (JAPANESE, "char"),
        (["カタカナ"], "char"),
        (THAI, "char"),
        (["ភាសាខ្មែរ"], "char"),
        (ENGLISH * 3 + CHINESE[:1], "13a"),
        ([], "13a"),
        ([""], "13a"),
        (["123 - 456"], "13a"),
    ],
)
def test_scripts(code: str, texts: list[str], tokenizer: str):
    assert choose_tokenizer(code, texts).tokenizer == tokenizer


def test_a_word_of_kana_does_not_make_chinese_japanese():
    assert (
        choose_tokenizer(
            "", ["我今天在商店里买了一包のり回家吃,味道非常好,大家都很喜欢,明天还要再去买一些回来。"]
        ).tokenizer
        == "zh"
    )


def test_what_is_asked_for_is_taken():
    assert choose_tokenizer("zh", CHINESE, "none") == ("none", "it was asked for")


@pytest.mark.parametrize("name", ["13A", "flores200", "ja-mecab", "spm"])
def test_tokenizers_that_need_more_are_refused(name: str):
    with pytest.raises(UsageError, match=f"no BLEU tokenizer '{name}'"):
        choose_tokenizer("", ENGLISH, name)


def test_lengths_are_words_where_words_are_marked():
    assert text_lengths(["a bb  ccc ", "", "d e"]) == ("words", [3, 0, 2])
    assert text_lengths(["one", "two words", "three more words"]) == ("words", [1, 2, 3])


@pytest.mark.parametrize(
    ("texts", "lengths"),
    [
        (CHINESE, [5, 11]),
        (THAI, [10]),
        (["KITTEN", "CAT"], [6, 3]),
        (["我 爱 你", "你 好"], [3, 2]),
        (["", "a"], [0, 1]),
        (["dates", "two words"], [5, 8]),
    ],
)
def test_lengths_are_characters_where_they_are_not(texts: list[str], lengths: list[int]):
    assert text_lengths(texts) == ("characters", lengths)

"""Choices by writing system: BLEU's tokenizer, and whether lengths count words or characters."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from heedful.errors import UsageError, did_you_mean

TOKENIZERS = ("13a", "intl", "zh", "char", "none")
"""Tokenizers of sacreBLEU that need no download and no other package."""

# Language codes of ISO 639-1 and 639-3 (and 639-2/B for Chinese) of languages written without spaces.
_CHINESE = frozenset({"zh", "zho", "chi", "cmn", "yue", "lzh", "wuu"})
_NO_SPACES = frozenset({"ja", "jpn", "th", "tha", "km", "khm", "lo", "lao", "my", "mya", "bo", "bod"})

_HAN = re.compile("[\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]")
_KANA = re.compile("[\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_OTHER = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff]")  # Thai, Lao, Tibetan; Burmese; Khmer
_SAMPLE = 2000


class TokenizerChoice(NamedTuple):
    """Tokenizer and the reason for it.

    Attributes:
        tokenizer: sacreBLEU's name.
        reason: a clause for the reader.
    """

    tokenizer: str
    reason: str


def choose_tokenizer(target_language: str, texts: Iterable[str], tokenizer: str = "") -> TokenizerChoice:
    """Choose how BLEU splits texts into words.

    ``13a`` as in the shared tasks; ``zh`` for Chinese; ``char`` for Japanese (its usual tokenizer needs MeCab), Thai,
    Khmer, Lao, Burmese and Tibetan. For any other language, the script of the references decides.

    Args:
        target_language: a code such as ``de`` or ``zh-Hant``; empty where not known.
        texts: references, of which the first 2,000 are examined.
        tokenizer: a tokenizer to use whatever the language; empty to choose one.

    Raises:
        UsageError: there is no tokenizer of that name.

    Example:
        >>> choose_tokenizer("zh_TW", []).tokenizer, choose_tokenizer("", ["今天天气很好。"]).tokenizer
        ('zh', 'zh')
    """
    if tokenizer:
        if tokenizer not in TOKENIZERS:
            raise UsageError(f"no BLEU tokenizer {tokenizer!r}{did_you_mean(tokenizer, TOKENIZERS)}")
        return TokenizerChoice(tokenizer, "it was asked for")
    code = re.split("[-_]", target_language.lower())[0]
    if code in _CHINESE:
        return TokenizerChoice("zh", f"the target language is {target_language}")
    if code in _NO_SPACES:
        return TokenizerChoice("char", f"{target_language} is written without spaces")
    return _choose_by_script(list(islice(texts, _SAMPLE)))


def _choose_by_script(texts: Sequence[str]) -> TokenizerChoice:
    sample = "".join("".join(text.split()) for text in texts)
    han, kana, other = (len(sample) - len(script.sub("", sample)) for script in (_HAN, _KANA, _OTHER))
    if 2 * (han + kana) > len(sample):
        # Japanese prose is about half kana, its headlines a fifth; Chinese has none but in names and quotations.
        if kana * 10 > han + kana:
            return TokenizerChoice("char", "the references are Japanese")
        return TokenizerChoice("zh", "the references are mostly Chinese characters")
    if 2 * other > len(sample):
        return TokenizerChoice("char", "the references are in a script without spaces")
    return TokenizerChoice("13a", "it is the standard one")


def text_lengths(texts: Sequence[str]) -> tuple[str, list[int]]:
    """Measure lengths in words; in characters where scripts have no spaces or at least half the texts are single words.

    Returns:
        ``words`` or ``characters``, and a length for each text; white space is not counted.

    Example:
        >>> text_lengths(["a b", "c d e"]), text_lengths(["今天"]), text_lengths(["cat", "cow"])
        (('words', [2, 3]), ('characters', [2]), ('characters', [3, 3]))
    """
    words = [text.split() for text in texts]
    single = sum(len(split) <= 1 for split in words)
    if 2 * single >= len(texts) or choose_tokenizer("", texts).tokenizer != "13a":
        return "characters", [sum(map(len, split)) for split in words]
    return "words", [len(split) for split in words]

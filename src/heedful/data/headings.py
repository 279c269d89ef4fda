"""Known headings of columns of pairs, in groups of translations: a row of two of one group is a pair, no headings."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_LANGUAGES: Final = (
    "english englisch anglais inglés ingles inglese inglês engels английский 英文 英语 英語",
    "german deutsch allemand alemán aleman tedesco alemão duits немецкий 德语 德文 ドイツ語",
    "french französisch franzoesisch français francais francés frances francese frans французский 法语 法文",
    "spanish spanisch espagnol español espanol spagnolo spaans испанский 西班牙语 西班牙文",
    "italian italienisch italien italiano italiaans итальянский 意大利语",
    "portuguese portugiesisch portugais portugués portugues português portoghese португальский 葡萄牙语",
    "dutch niederländisch niederlaendisch holländisch néerlandais neerlandés nederlands 荷兰语",
    "russian russisch russe ruso russo русский 俄语 俄文",
    "chinese chinesisch chinois chino cinese 中文 汉语 漢語",
    "japanese japanisch japonais japonés giapponese 日本語 日语 日文",
    "korean koreanisch coréen coreano 한국어 韩语",
    "arabic arabisch arabe árabe العربية 阿拉伯语",
    "polish polnisch polonais polski polaco",
    "czech tschechisch tchèque čeština česky",
    "ukrainian ukrainisch ukrainien українська",
    "turkish türkisch turc türkçe turkce",
    "hebrew hebräisch hébreu עברית",
    "hindi हिन्दी",
    "vietnamese vietnamesisch vietnamien",
    "indonesian indonesisch indonésien",
    "swedish schwedisch suédois svenska",
    "danish dänisch danois dansk",
    "finnish finnisch finnois suomi",
    "greek griechisch grec ελληνικά",
    "latin lateinisch latein",
)
_ROLES: Final = (
    "source quelle quelltext origen fuente 源 源语言 来源",
    "target ziel zieltext cible destino 目标 目標 目标语言",
    "input eingabe entrée entrada 输入",
    "output ausgabe sortie salida 输出",
    "text texte texto testo 文本",
    "sentence satz phrase frase oración 句子",
    "word words wort wörter mot mots palabra parola 单词 词 词语",
    "translation übersetzung uebersetzung traduction traducción traduzione 翻译 译文 譯文",
    "original original_text 原文 原句",
    "question query frage pregunta domanda 问题 提问",
    "answer antwort antworten réponse respuesta risposta response reply solution result 答案 回答 答复",
    "paragraph passage context absatz kontext contexte contexto párrafo 段落 上下文",
    "title titel titre título headline überschrift schlagzeile 标题",
    "article artikel artículo articolo 文章",
    "summary zusammenfassung résumé resumen riassunto 摘要",
    "document dokument documento 文档",
    "image bild immagine imagen picture photo foto img 图片 图像 照片",
    "caption captions description beschreibung descripción legende légende 描述 说明",
    "name nom nombre nome namen имя 名字 姓名",
    "greeting gruss salutation saludo 问候",
    "comment kommentar commentaire comentario 评论",
    "old alt alte ancien viejo antiguo vecchio 旧",
    "new neu neue nouveau nuevo nuovo 新",
    "before vorher avant antes prima",
    "after nachher après después dopo",
    "singular einzahl singulier singolare 单数",
    "plural mehrzahl pluriel plurale 复数",
    "lemma grundform lemme lema",
    "form inflected wordform wortform forme forma",
    "pronunciation aussprache prononciation pronunciación 发音 读音",
    "phonemes phones phoneme ipa arpabet",
    "modern modernized 现代文 白话文 白话",
    "historical historic archaic 古文 文言文 文言",
    "simplified 简体",
    "traditional 繁体",
    "label labels label_text 标签 标注",
    "class category 类别 分类",
)
_ALIKE: Final = ("wrong incorrect error errors noisy mistake", "correct corrected correction clean")
"""Further groups, of words that mean much the same."""
_OTHERS: Final = (
    "en eng en-us en-gb de deu fr fra spa ita pt por pt-br nl nld ru rus zh zho cmn zh-cn zh-tw zh-hans zh-hant "
    "mandarin cantonese ja jpn ko kor ar ara pl cs ces uk tr he hi vi sv da fi el src tgt trg "
    "reference sentence1 sentence2 translated sentiment review body abstract content story highlights prompt "
    "completion pinyin transliteration normalized lang1 lang2 file filename filepath image_name image_path file_name "
    "拼音 上联 下联 "
    "raw informal formal simple complex infinitive instruction utterance intent sql code formula latex iso "
    "graphemes grapheme romanization romaji kana kanji hiragana gloss spelling dialect paraphrase"
)
"""Headings that are no words of one another: each is a group of its own, as codes of languages are."""


def _groups() -> dict[str, str]:
    """First heading of the group of each heading."""
    groups = {other: other for other in _OTHERS.split()}
    for line in (*_LANGUAGES, *_ROLES, *_ALIKE):
        first, *others = line.split()
        groups |= dict.fromkeys((first, *others), first)
    return groups


HEADINGS: Final[Mapping[str, str]] = MappingProxyType(_groups())
"""Group of each known heading, in lower case. Codes that are words (es, it, is, no) are left out."""

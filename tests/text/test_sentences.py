"""Sentence splitting."""

import pytest

from heedful.text.sentences import sentence_spans, split_sentences

CASES: list[tuple[str, list[str]]] = [
    ("", []),
    ("  \n ", []),
    ("no end", ["no end"]),
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("I met Dr. Who, Mr. J. R. Fox and Mrs. Bell.", ["I met Dr. Who, Mr. J. R. Fox and Mrs. Bell."]),
    ("It cost 3.50 in the U.S. market, i.e. little.", ["It cost 3.50 in the U.S. market, i.e. little."]),
    ('"Why?" he asked. (He knew.) So', ['"Why?" he asked.', "(He knew.)", "So"]),
    ("Well... maybe. So did I. He left.", ["Well... maybe.", "So did I.", "He left."]),
    ("Bad.<br /><br />Very bad<br>Worst", ["Bad.", "Very bad", "Worst"]),
    ("first line\nsecond line", ["first line", "second line"]),
    ("房间很好。服务不错！“真的？”是的……", ["房间很好。", "服务不错！", "“真的？”", "是的……"]),
    ("价格3.5元。不贵", ["价格3.5元。", "不贵"]),
    ("什么？!好。很好!下次再来。真的吗?! 是", ["什么？!", "好。", "很好!", "下次再来。", "真的吗?!", "是"]),
    ("Why?! he said. wow!!x", ["Why?! he said. wow!!x"]),
    ("“走吧！……”他说", ["“走吧！……”他说"]),
    ("他说：“我累了！”我说：“好。”我们走", ["他说：“我累了！”", "我说：“好。”", "我们走"]),
    (
        "这家酒店（太棒了！）就在海边。（那时是一月。）冷",
        ["这家酒店（太棒了！）就在海边。", "（那时是一月。）", "冷"],
    ),
    ("《谁是凶手？》是一本书。天气真好.走吧", ["《谁是凶手？》是一本书。", "天气真好.", "走吧"]),
    ("「危ない！」と彼は叫んだ。「はい。」とても", ["「危ない！」と彼は叫んだ。", "「はい。」", "とても"]),
    (
        "See vol. 2. Then No. 5. Is he in? No. Tom left.",
        ["See vol. 2.", "Then No. 5.", "Is he in?", "No.", "Tom left."],
    ),
    (
        "She takes vitamin C. It helps. At 5 p.m. They met",
        ["She takes vitamin C.", "It helps.", "At 5 p.m.", "They met"],
    ),
    ("1. Peel. 2. Cut. Thanks! 🎂 I... I like it", ["1. Peel.", "2. Cut.", "Thanks! 🎂", "I... I like it"]),
    (
        "In der 3. Klasse, z. B. Er. Um 15 h 30. Il pleut",
        ["In der 3. Klasse, z. B. Er.", "Um 15 h 30.", "Il pleut"],
    ),
    (
        "J.-P. Roux, Dipl.-Ing. Weiß, l'art. 5. Les EE. UU.",
        ["J.-P. Roux, Dipl.-Ing. Weiß, l'art. 5.", "Les EE. UU."],
    ),
    ("«Ты где?» — спросила она. В 1841 г. Он ушёл", ["«Ты где?» — спросила она.", "В 1841 г.", "Он ушёл"]),
    ("ود. سعاد (يا له!) هنا. «متى؟» سأل علي. كان", ["ود. سعاد (يا له!) هنا.", "«متى؟» سأل علي.", "كان"]),
    ('ए. पी. जे. आए। "क्यों?" माँ ने पूछा। वह', ["ए. पी. जे. आए।", '"क्यों?" माँ ने पूछा।', "वह"]),
    ("Am 3. Mai, z.B. Berlin. Das war 1984. Gut.", ["Am 3. Mai, z.B. Berlin.", "Das war 1984.", "Gut."]),
    ("So it is… maybe. Ah… Yes.", ["So it is… maybe.", "Ah…", "Yes."]),
    ("She Won. It rains.", ["She Won.", "It rains."]),
]


@pytest.mark.parametrize(("text", "sentences"), CASES)
def test_sentences(text: str, sentences: list[str]):
    assert split_sentences(text) == sentences


@pytest.mark.parametrize("text", ["", " ", "One. Two!\n\nThree", "好。“坏？” Yes.\n"])
def test_spans_cover_the_text(text: str):
    assert "".join(text[start:end] for start, end in sentence_spans(text)) == text


def test_long_texts_take_linear_time():
    assert len(split_sentences("a. " * 100_000 + "B. " * 10)) <= 100_010
    assert split_sentences("." * 100_000) == ["." * 100_000]

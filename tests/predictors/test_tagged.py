"""Tagged texts through a model."""

from heedful.predictors.tagged import translate_tagged
from heedful.text.tagged_text import Tag, TaggedText
from tests.serving.reversing import Reverser


def test_the_sentence_is_translated_whole_and_its_tags_follow_their_words():
    passages = [TaggedText("ab cd ef. Gh ij.", (Tag(3, 8), Tag(3, 5, 0), Tag(10, 12))), TaggedText("kl")]
    outputs = translate_tagged(Reverser(), passages)  # type: ignore[arg-type]
    first, second = (tagged for tagged, _ in outputs)
    assert first.text == ".ji hG .fe dc ba"
    assert [first.text[tag.start : tag.end] for tag in first.tags] == ["fe dc", "dc", "hG"]
    assert second == TaggedText("lk")


def test_without_attention_tags_keep_their_share_of_the_length():
    passages = [TaggedText("ab cd ef", (Tag(0, 2),))]
    ((output, _),) = translate_tagged(Reverser(has_attention=False), passages)  # type: ignore[arg-type]
    assert output.text[output.tags[0].start : output.tags[0].end] == "fe"

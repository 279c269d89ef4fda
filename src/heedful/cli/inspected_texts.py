"""Texts of `heedful inspect` for labels, answers and captions: what counted most, in a few lines."""

from collections.abc import Sequence
from math import exp
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from heedful.predictors.answerer import Answer, AnswerSpan
    from heedful.predictors.captioner import Caption
    from heedful.predictors.word_effects import WordEffect, WordEffects

MOST_WORDS: Final = 12
"""Largest number of words that are listed."""
_MOST_FACTS: Final = 30
"""Largest number of facts and of sentences that are listed."""
NO_ANSWER: Final = "(no answer)"
"""Text in place of an answer where the facts have none."""
_AROUND: Final = 60
"""Number of characters before and after an answer that are shown."""
_MOST_CHARACTERS: Final = 90
"""Largest number of characters of a fact or a sentence."""


def effects_text(explained: "WordEffects", note: str) -> str:
    """Write a label, the weights of sentences where there are several, and the words that matter most.

    Args:
        note: how far weights can be trusted; empty = unknown.
    """
    result = explained.result
    rows = [
        f"{each.weight:9.3f}  {each.effect or 0.0:+14.3f}  {each.word.strip()}"
        for each in explained.strongest(MOST_WORDS)
    ]
    lines = [f"{result.label}\t{result.probability:.4f}", ""]
    if len(explained.sentences) > 1 and result.attention is not None:
        lines += [*_sentence_lines(explained.sentences), ""]
    lines += [f"{'attention':>9}  {'without it':>14}  word", *rows]
    return "\n".join([*lines, *(["", note] if note else [])])


def _sentence_lines(sentences: "Sequence[Sequence[WordEffect]]") -> list[str]:
    weights = [sum(each.weight for each in sentence) for sentence in sentences]
    texts = ["".join(each.word for each in sentence) for sentence in sentences]
    rows = [f"{weights[index]:9.3f}  {_short(texts[index])}" for index in _largest(weights, _MOST_FACTS)]
    return [f"{'attention':>9}  sentence", *rows]


def answer_text(answer: "Answer") -> str:
    """Write an answer with its probability, and the facts or the words with most weight."""
    lines = [f"{answer.answer or NO_ANSWER}\t{answer.probability:.4f}"]
    if answer.span is not None:
        lines += ["", *_span_lines(answer.span, answer.answer)]
    elif answer.weights is not None:
        facts = answer.story.facts
        shown = _largest(answer.weights.max(axis=0).tolist(), _MOST_FACTS)
        rows = ["".join(f"{weight:9.3f}" for weight in answer.weights[:, index].tolist()) for index in shown]
        lines += ["", "".join(f"{step:>9}" for step in answer.steps) + "  fact"]
        lines += [f"{row}  {_short(facts[index])}" for row, index in zip(rows, shown, strict=True)]
    return "\n".join(lines)


def _span_lines(span: "AnswerSpan", answer: str) -> list[str]:
    """The answer in its sentence, and the words of the passage with most weight."""
    lines: list[str] = []
    if answer:
        before, after = span.passage[: span.start], span.passage[span.end :]
        before = f"...{before[-_AROUND:]}" if len(before) > _AROUND else before
        after = f"{after[:_AROUND]}..." if len(after) > _AROUND else after
        lines += [_line(f"{before}[{span.passage[span.start : span.end]}]{after}"), ""]
    words = [
        (span.passage[first:after].strip(), own.tolist())
        for first, after, own in span.words()
        if span.passage[first:after].strip()
    ]
    order = sorted(words, key=lambda each: -max(each[1]))[:MOST_WORDS]
    rows = ["".join(f"{weight:9.3f}" for weight in own) + f"  {_short(word)}" for word, own in order]
    return [*lines, f"{'attention':>9}{'start':>9}{'end':>9}  word", *rows]


def caption_text(caption: "Caption") -> str:
    """Write a caption with its probability, and the region with most weight for each word, or for each character."""
    from heedful.pages.words import Words
    from heedful.text.vocabulary import EOS
    from heedful.text.weighted_words import EOS_PIECES

    lines = [f"{caption.text}\t{exp(caption.log_prob):.4f}"]
    if caption.attention is None:
        return lines[0]
    rows, columns = caption.grid
    ids = [EOS if piece in EOS_PIECES else -1 for piece in caption.pieces]
    are_characters = all(len(piece) == 1 or piece in EOS_PIECES for piece in caption.pieces)
    words = Words.of(ids, caption.pieces, are_characters)
    regions = f"{rows} x {columns} regions" if columns else f"{caption.attention.shape[1]} regions"
    heading = f"{'row':>6}{'column':>8}" if columns else f"{'region':>8}"
    unit = "character" if are_characters else "word"
    lines += ["", f"The region with most weight, of {regions}:", f"{'weight':>9}{heading}  {unit}"]
    for index, word in enumerate(words.words):
        own = [row for row, each in enumerate(words.word_of) if each == index and ids[row] != EOS]
        if own:
            weights = caption.attention[own].mean(axis=0)
            best = int(weights.argmax())
            numbers = f"{best // columns + 1:6}{best % columns + 1:8}" if columns else f"{best + 1:8}"
            lines.append(f"{weights[best]:9.3f}{numbers}  {_line(word)}")
    return "\n".join(lines)


def _largest(weights: "Sequence[float]", most: int) -> list[int]:
    """Indices of the largest weights, in ascending order."""
    return sorted(sorted(range(len(weights)), key=lambda index: -weights[index])[:most])


def _line(text: str) -> str:
    from heedful.text.quoting import harmless

    return harmless(text).strip()


def _short(text: str) -> str:
    line = _line(text)
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."

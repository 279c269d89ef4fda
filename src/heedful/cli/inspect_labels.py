"""Inspection of classifiers, answerers and captioners: attention over words, facts or regions."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.inspected_texts import NO_ANSWER, answer_text, caption_text, effects_text
from heedful.cli.messages import Messages
from heedful.errors import ResourceError, UsageError

if TYPE_CHECKING:
    from heedful.predictors.answerer import Answer, Answerer
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.interface import Predictor
    from heedful.predictors.word_effects import WordEffects
    from heedful.text.stories import Story


def inspect_labels(predictor: "Predictor", text: str, html: Path | None, png: Path | None, messages: Messages) -> None:
    """Inspect a text, a story or a picture.

    Args:
        text: a text, a story in one line, or the path of a picture.
        html: page to write; None = none.
        png: picture to write; None = none.

    Raises:
        UsageError: the model has no attention to show.
    """
    from heedful.predictors.answerer import Answerer
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.classifier import Classifier

    if isinstance(predictor, Classifier):
        _inspect_words(predictor, text, html, png, messages)
        return
    if isinstance(predictor, Answerer):
        text = _inspect_answer(predictor, text, html, png, messages)
    elif isinstance(predictor, Captioner):
        _inspect_caption(predictor, text, html, png, messages)
    elif png is not None:
        raise UsageError("inspect: --png is for translations, labels, answers and captions; take --html")
    elif html is None:
        print(predictor.predict([text])[0])
    if html is not None:
        from heedful.pages.document import document

        views = [(view, drawn) for view in predictor.attention_views([text]) if (drawn := view.draw())]
        if not views:
            raise UsageError(f"inspect: {predictor.folder.path}: this model has no attention to draw for {text!r:.60}")
        parts = [f'<p class="faint">{view.explanation}.</p>\n{drawn}' for view, drawn in views]
        write_page(html, document(views[0][0].title, parts))
        print(html)


def write_page(path: Path, page: str) -> None:
    """Write a page.

    Raises:
        ResourceError: the file cannot be written.
    """
    from heedful.files.atomic_write import atomic_write

    try:
        with atomic_write(path) as stream:
            stream.write(page)
    except OSError as error:
        raise ResourceError(f"{path}: not written: {error.strerror or error}; choose another --html") from None


def _inspect_words(
    classifier: "Classifier", text: str, html: Path | None, png: Path | None, messages: Messages
) -> None:
    from heedful.predictors.word_effects import MOST_WORDS, word_effects
    from heedful.text.quoting import shortened

    explained = word_effects(classifier, text)
    result, title = explained.result, f"{shortened(text)} → {explained.result.label}"
    if png is not None and result.attention is None:
        raise UsageError("inspect: --png draws attention, which this model does not have; take --html")
    if result.was_cut:
        messages.warn(f"TEXT is longer than {classifier.text.max_tokens} tokens and was truncated")
    if any(each.effect is None and each.word.strip() for each in chain.from_iterable(explained.sentences)):
        messages.warn(f"only the {MOST_WORDS} words of the largest weights are left out, one at a time")
    weights = [[(each.word, each.weight) for each in sentence] for sentence in explained.sentences]
    if html is not None:
        from heedful.pages.word_effects import word_effects_page

        effects = [[(each.word, each.effect or 0.0) for each in sentence] for sentence in explained.sentences]
        labels = [*result.probabilities.items()]
        write_page(html, word_effects_page(title, labels, weights, effects, _note(explained)))
        print(html)
    if png is not None:
        from heedful.inspection.text_plot import save_weighted_text

        if note := save_weighted_text(png, weights, title):
            messages.warn(note)
        print(png)
    if html is None and png is None:
        print(effects_text(explained, _note(explained)))


def _note(explained: "WordEffects") -> str:
    from heedful.predictors.word_effects import FAITHFUL

    if explained.correlation is None:
        return ""
    verdict = (
        "the words that the model looks at are about those that decide"
        if explained.correlation >= FAITHFUL
        else "here the words that the model looks at are not those that decide"
    )
    return f"Rank correlation of attention and effect: {explained.correlation:.2f}; {verdict}."


def _inspect_answer(answerer: "Answerer", text: str, html: Path | None, png: Path | None, messages: Messages) -> str:
    """Inspect an answer as text or picture.

    Returns:
        The story in one line, of which a page is made.

    Raises:
        UsageError: the text has no facts, or the model has no attention to draw.
    """
    from heedful.data.stories import story_line

    story = _story(text)
    (answer,) = answerer.answer([story])
    if answer.was_cut:
        messages.warn(f"TEXT is longer than {answerer.text.max_tokens} tokens and was truncated")
    if png is not None:
        from heedful.inspection.text_plot import save_weighted_text

        if answer.span is None and answer.weights is None:
            raise UsageError("inspect: --png draws attention, which this model does not have")
        weights = answer.span.sentences() if answer.span is not None else _weighted_facts(answer)
        if note := save_weighted_text(png, weights, f"{story.question} → {answer.answer or NO_ANSWER}"):
            messages.warn(note)
        print(png)
    if html is None and png is None:
        print(answer_text(answer))
        if answer.span is None and answer.weights is None:
            messages.say("this model has no attention; its facts have no weights")
    return story_line(story)


def _story(text: str) -> "Story":
    """Story of a text: facts and question separated by " | " or a tab, a JSON object, or sentences one of which asks.

    Raises:
        UsageError: it has no facts.
        DataError: it is no story.
    """
    from heedful.predictors.answerer import story_of_line
    from heedful.text.sentences import split_sentences
    from heedful.text.stories import SEPARATOR, Story, parse_story

    if "\t" in text:
        story = parse_story(text, "TEXT", 1)
    elif text.startswith("{") or SEPARATOR in text:
        story = story_of_line(text)
    else:
        sentences = split_sentences(text)
        asking = [index for index, sentence in enumerate(sentences) if sentence.rstrip().endswith(("?", "？"))]
        question = sentences.pop(asking[-1] if asking else -1)
        story = Story(tuple(map(str.strip, sentences)), question.strip())
    if not story.facts:
        raise UsageError(
            "inspect: TEXT has no facts; give them before the question, such as 'Ada went home. Where is Ada?'"
        )
    return story


def _weighted_facts(answer: "Answer") -> list[list[tuple[str, float]]]:
    """Words of each fact, which share the mean of its weights over the steps."""
    means = [] if answer.weights is None else answer.weights.mean(axis=0).tolist()
    facts = [fact.split() or [fact] for fact in answer.story.facts]
    return [[(f" {word}", mean / len(words)) for word in words] for words, mean in zip(facts, means, strict=True)]


def _inspect_caption(
    captioner: "Captioner", path: str, html: Path | None, png: Path | None, messages: Messages
) -> None:
    """Inspect a caption as text or picture.

    Raises:
        UsageError: a picture is to be drawn, and the model has no attention.
    """
    if html is not None and png is None:
        return  # the page is made by others
    (caption,) = captioner.caption([path], attention=True)
    if png is None:
        print(caption_text(caption))
        if caption.attention is None:
            messages.say("this model has no attention; its words have no regions")
        return
    from heedful.inspection.picture_plot import save_attention_over_image

    if caption.attention is None:
        raise UsageError(f"inspect: {captioner.folder.path}: this model has no attention to draw")
    sizes = caption.grid, caption.region
    if note := save_attention_over_image(png, caption.image, caption.pieces, caption.attention, *sizes):
        messages.warn(note)
    print(png)

"""Inspection of classifiers, answerers and captioners: attention over words, facts or regions."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from heedful.cli.messages import Messages
from heedful.errors import ResourceError, UsageError

if TYPE_CHECKING:
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.classifier import Classifier
    from heedful.predictors.interface import Predictor
    from heedful.predictors.word_effects import WordEffects

_SHOWN: Final = 12
"""Number of words whose effects are listed on a terminal."""


def inspect_labels(predictor: "Predictor", text: str, html: Path | None, png: Path | None, messages: Messages) -> None:
    """Inspect a text, a story or a picture.

    Args:
        text: a text, a story in one line, or the path of a picture.
        html: page to write; None = none.
        png: picture to write; None = none.

    Raises:
        UsageError: the model has no attention to show.
    """
    from heedful.predictors.captioner import Captioner
    from heedful.predictors.classifier import Classifier

    if isinstance(predictor, Classifier):
        _inspect_words(predictor, text, html, png, messages)
        return
    if isinstance(predictor, Captioner) and png is not None:
        _draw_picture(predictor, text, png, messages)
    elif png is not None:
        raise UsageError("inspect: --png is for translations, texts with labels and captions; take --html")
    if html is not None:
        from heedful.pages.document import document

        views = [(view, drawn) for view in predictor.attention_views([text]) if (drawn := view.draw())]
        if not views:
            raise UsageError(f"inspect: {predictor.folder.path}: this model has no attention to draw for {text!r:.60}")
        parts = [f'<p class="faint">{view.explanation}.</p>\n{drawn}' for view, drawn in views]
        write_page(html, document(views[0][0].title, parts))
        print(html)
    if html is None and png is None:
        print(predictor.predict([text])[0])
        messages.say("for the attention: --html FILE")


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
        print(_as_text(explained))


def _as_text(explained: "WordEffects") -> str:
    """Label, the words that matter most, and how far weights can be trusted."""
    result = explained.result
    rows = [
        f"{each.weight:9.3f}  {each.effect or 0.0:+14.3f}  {each.word.strip()}" for each in explained.strongest(_SHOWN)
    ]
    lines = [f"{result.label}\t{result.probability:.4f}", "", f"{'attention':>9}  {'without it':>14}  word", *rows]
    return "\n".join([*lines, *(["", note] if (note := _note(explained)) else [])])


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


def _draw_picture(captioner: "Captioner", path: str, png: Path, messages: Messages) -> None:
    from heedful.inspection.picture_plot import save_attention_over_image

    (caption,) = captioner.caption([path], attention=True)
    if caption.attention is None:
        raise UsageError(f"inspect: {captioner.folder.path}: this model has no attention to draw")
    note = save_attention_over_image(png, caption.image, caption.pieces, caption.attention, caption.grid)
    if note:
        messages.warn(note)
    print(png)

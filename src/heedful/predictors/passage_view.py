"""Passages for the page: translations of texts that are not a single sentence as the model reads it."""

from collections.abc import Callable
from itertools import chain, pairwise

from heedful.pages.passage import Passage, PassagePart, spans_in
from heedful.predictors.translation import SegmentOutput
from heedful.predictors.translator import Translator
from heedful.search.config import SearchConfig
from heedful.text.kept import has_words


def passage_of(
    translator: Translator, text: str, search: SearchConfig, cancelled: Callable[[], bool] | None = None
) -> Passage | None:
    """Translate a text segment by segment.

    Args:
        search: settings of the search; one output is asked for.
        cancelled: called between the steps of the search, which ends once it returns True.

    Returns:
        The passage, as every other way to translate gives it; None for a blank text.
    """
    parts = translator.split(text)
    if not parts.segments:
        return None
    (whole,) = translator.translate([text], beam=search.beam, search=search, cancelled=cancelled)
    only = SegmentOutput(parts.segments[0], len(parts.layout[0]), whole)
    outputs = whole.segments or (only,)
    edges = [0, *chain.from_iterable((one.start, one.end) for one in outputs), len(whole.text)]
    between = tuple(whole.text[start:end] for start, end in list(pairwise(edges))[::2])
    reads_all = not translator.text.reads_sentences
    return Passage(tuple(_part(one, reads_all) for one in outputs), parts.layout, between)


def _part(one: SegmentOutput, reads_all: bool) -> PassagePart:
    source, output = one.segment.reading, one.output.text
    places = tuple((span.start, span.end, span.kind) for span in one.segment.kept)
    spans = [(source[start:end], kind) for start, end, kind in places]
    read = one.output.decoded[0] if one.output.decoded else source
    # A model of characters also reads what has no letters, such as a date.
    reading = read if reads_all or has_words(source, one.segment.kept) else ""
    return PassagePart(source, output, places, spans_in(output, spans), reading, one.output.fault)

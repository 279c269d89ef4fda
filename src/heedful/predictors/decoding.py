"""Decoding of sources with one model: by themselves, and following the corrections of similar sources."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, final

from heedful.engines.biased_search import KnnSearch
from heedful.engines.engine import Backend, decode_sorted
from heedful.engines.offered_terms import search_sources
from heedful.engines.text_constraints import SourceConstraints, TextConstraints
from heedful.engines.translation_memory import MemoryMatch
from heedful.engines.unknown_words import UnknownWords
from heedful.errors import UsageError
from heedful.predictors.engine_choice import Backends
from heedful.predictors.translation import Alternative, Translation, translation_of
from heedful.predictors.word_tables import WordTables
from heedful.search.config import SearchConfig
from heedful.text.dictionary import Dictionary
from heedful.text.encoding import encode_source
from heedful.text.segments import Segment
from heedful.text.tokenizer import TextConfig, Tokenizer
from heedful.text.vocabulary import UNK


class DecodableModel(Protocol):
    """Loaded model with all that decoding needs."""

    @property
    def backends(self) -> Backends:
        """Backends that run it."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer:
        """Tokenizer of the source side."""
        ...

    @property
    def target_tokenizer(self) -> Tokenizer:
        """Tokenizer of the target side."""
        ...

    @property
    def text(self) -> TextConfig:
        """Text settings with the limits."""
        ...

    @property
    def alignment_shift(self) -> int:
        """Number of steps between the one that predicts a token and the one whose attention aligns it."""
        ...

    @property
    def tables(self) -> WordTables:
        """Tables of words."""
        ...


@final
@dataclass(frozen=True)
class Decoding:
    """Decoding of sources by a model, with settings.

    Attributes:
        model: the model.
        search: beam, penalties and limits.
        attention: whether to return attention and alignment.
        batch_tokens: largest number of source positions times beam in a batch.
        is_exact: whether results must be bit-identical in every batch.
        cancelled: called between the steps of the search; True ends it.
        dictionary: reader of the translations for unknown words.
    """

    model: DecodableModel
    search: SearchConfig
    attention: bool
    batch_tokens: int
    is_exact: bool
    cancelled: Callable[[], bool] | None
    dictionary: Callable[[], Dictionary]

    def translate(
        self,
        texts: Sequence[str],
        constraints: SourceConstraints,
        backend: Backend | None = None,
        indices: Sequence[int] | None = None,
    ) -> Iterator[Translation]:
        """Translate sources that are in memory.

        Args:
            backend: backend that decodes; None = chosen by the model.
            indices: index of each source from the first one, which random samples depend on; None = 0, 1, 2, ...

        Yields:
            One translation for each text.
        """
        model, search = self.model, self.search
        tokenizers = (model.source_tokenizer, model.target_tokenizer)
        encoded = [encode_source(model.source_tokenizer, text, model.text) for text in texts]
        full = [index for index, (ids, _) in enumerate(encoded) if len(ids) > 1]
        ids = [encoded[index][0] for index in full]
        backend = backend or model.backends.searching(search, self.attention, constraints.strictest, self.is_exact)
        decode = partial(decode_sorted, backend, config=search, batch_tokens=self.batch_tokens)
        decode = partial(decode, need_alignment=self.attention, cancelled=self.cancelled)
        sources = [texts[index] for index in full]
        places = full if indices is None else [indices[index] for index in full]
        ids, decoded = search_sources(constraints, tokenizers, model.text.max_tokens, sources, ids, places, decode)
        hypotheses = dict(zip(full, decoded, strict=True))
        known: dict[tuple[int, int], str] = {}
        if search.replace_unknown:
            reader = model.backends.scoring(attention=True, is_exact=self.is_exact)
            unknown = UnknownWords(self.dictionary(), reader, *tokenizers, model.alignment_shift)
            unknown.check(model.text)
            known = unknown.replaced(sources, ids, decoded, self.batch_tokens)
        rows = {index: row for row, index in enumerate(full)}
        for index, text in enumerate(texts):
            if index in hypotheses:
                written = [known.get((rows[index], rank), "") for rank in range(len(hypotheses[index]))]
                source, was_cut = ids[rows[index]], encoded[index][1]
                one = translation_of(
                    text, source, hypotheses[index], was_cut, written, tokenizers, model.alignment_shift
                )
                yield replace(one, unknown=tokenizers[0].unknown_letters(text)) if UNK in source else one
            else:
                yield Translation(text, "", 0.0, 0.0, (Alternative("", 0.0, 0.0),))

    def translate_segments(
        self, segments: Sequence[Segment], constraints: SourceConstraints, indices: Sequence[int]
    ) -> Iterator[Translation]:
        """Translate the sources of segments, as `translate` does."""
        return self.translate([one.source for one in segments], constraints, indices=indices)

    @property
    def can_align(self) -> bool:
        """Whether the engine gives the attention that alignments need."""
        try:
            backend = self.model.backends.searching(self.search, True, None, self.is_exact)
        except UsageError:  # a named engine
            return False
        return backend.supports(self.search, True) is None

    def decode_with_memory(self, texts: list[str], matches: list[list[MemoryMatch]]) -> Iterator[Translation] | None:
        """Translate sources so that outputs follow the corrections of similar ones.

        Args:
            matches: near matches of each, one or more.

        Returns:
            One translation for each text; None if the engine searches by itself.
        """
        model = self.model
        backend = model.backends.by_steps(self.search, self.attention)
        if backend is None:
            return None
        tokenizers = model.source_tokenizer, model.target_tokenizer
        biased = KnnSearch(backend, tokenizers, model.text, model.backends.draw if self.is_exact else None)
        free = TextConstraints().of_sources(model.target_tokenizer)
        batches = biased.batches(texts, matches)
        return (output for batch, each in batches for output in self.translate(batch, free, each))

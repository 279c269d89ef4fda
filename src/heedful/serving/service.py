"""Translation of requests: languages, sentences, markup, alternatives and chains of models."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from starlette.exceptions import HTTPException

from heedful.errors import ResourceError, UsageError
from heedful.predictors.translator import Translator
from heedful.serving import markup
from heedful.serving.batching import Batcher, Outputs
from heedful.serving.catalog import Catalog
from heedful.serving.detection import Detector, Guess
from heedful.serving.keys import Keys
from heedful.serving.limits import Budget, Limits
from heedful.serving.metrics import Metrics
from heedful.serving.suggestions import LinksFile, Suggestions
from heedful.text.segments import Text

AUTO: Final = "auto"
"""Source language of a request that asks for detection."""


@final
@dataclass(frozen=True)
class Order:
    """Request for translations."""

    texts: Sequence[str]
    source: str
    """Language code as the client spells it, or "auto"."""
    target: str
    is_html: bool = False
    num_alternatives: int = 0


@final
@dataclass(frozen=True)
class Answer:
    """Translation of one text."""

    text: str
    alternatives: tuple[str, ...] = ()
    """Other outputs, best first."""
    detected: Guess | None = None
    """Detected source language; None where the request named it."""
    source: str = ""
    """Code of the source language."""
    target: str = ""
    """Code of the target language."""


@final
@dataclass(frozen=True)
class _Layout:
    """Text taken apart: its nodes, and the segments of each."""

    nodes: list[markup.Node]
    texts: list[Text]
    """Segments of each text node."""
    is_html: bool

    @property
    def sentences(self) -> list[str]:
        """Segments of all nodes in order, as models read them."""
        return [segment.reading for text in self.texts for segment in text.segments]

    def write(self, outputs: Sequence[str]) -> str:
        """Put translated sentences into the layout.

        Args:
            outputs: translation of each sentence.

        Returns:
            Text or HTML.
        """
        remaining = iter(outputs)
        texts = [text.join([next(remaining) for _ in text.segments]) for text in self.texts]
        return markup.render(self.nodes, texts) if self.is_html else "".join(texts)


@final
class Service:
    """State of one server: its models, limits, keys, queue and figures."""

    def __init__(
        self,
        catalog: Catalog,
        limits: Limits | None = None,
        keys: Keys | None = None,
        suggestions: Suggestions | None = None,
        links: LinksFile | None = None,
        takes_corrections: bool = False,
    ) -> None:
        """Start the batching thread.

        Args:
            catalog: loaded models.
            limits: upper bounds; None = the defaults.
            keys: API keys; None = none needed.
            suggestions: file of suggested translations; None = suggestions are refused.
            links: file of corrected word links; None = links are refused.
            takes_corrections: whether a suggestion corrects the model at once.
        """
        self.catalog: Final = catalog
        self.limits: Final = limits or Limits()
        self.keys: Final = keys or Keys()
        self.suggestions: Final = suggestions
        self.links: Final = links
        self.takes_corrections: Final = takes_corrections
        self.metrics: Final = Metrics()
        self.batcher: Final = Batcher(self.metrics, self.limits.queue)
        self.detector: Final = Detector(catalog)
        self.budget: Final = Budget(self.limits.requests_per_minute)

    async def translate(self, order: Order, most_characters: int | None = None) -> list[Answer]:
        """Translate the texts of a request.

        Args:
            order: the request.
            most_characters: bound in place of the usual one, for files.

        Returns:
            One answer for each text.

        Raises:
            HTTPException: 400 for a language or size that is not supported, 503 when there is no time.
        """
        self.check_size(order, most_characters)
        target = self.language(order.target)
        deadline = time.monotonic() + self.limits.answer_seconds
        guesses = [self.guess(text) if order.source == AUTO else None for text in order.texts]
        languages = [guess.language if guess else self.language(order.source) for guess in guesses]
        groups = dict.fromkeys(languages)
        answers: list[Answer] = [Answer("")] * len(order.texts)

        async def translate_group(source: str) -> None:
            rows = [row for row, language in enumerate(languages) if language == source]
            texts = [order.texts[row] for row in rows]
            outputs = await self._translate_texts(texts, source, target, order, deadline)
            for row, (best, *others) in zip(rows, outputs, strict=True):
                answers[row] = Answer(best, tuple(others), guesses[row], source, target)

        if len(groups) == 1:
            await translate_group(languages[0])
        else:
            await asyncio.gather(*map(translate_group, groups))
        return answers

    async def correct(self, text: str, correction: str, source: str, target: str) -> None:
        """Correct the translation of a sentence, from the next request on.

        Args:
            text: the sentence.
            correction: its translation.
            source: code of a language of this server, or "auto".
            target: code of a language of this server.

        Raises:
            HTTPException: 400, the text is not one sentence with one line of translation, or no single model
                translates between these languages; 403, the corrections cannot be written.
        """
        path = self.catalog.path(self.guess(text).language if source == AUTO else source, target)
        if path is None or len(path) != 1:
            raise HTTPException(400, f"Invalid request: no model translates from {source} to {target} in one step")
        parts = _take_apart(text, False, path[0]).sentences
        if len(parts) != 1:
            raise HTTPException(400, f"Invalid request: correct one sentence at a time, not {len(parts)}")
        try:
            await asyncio.to_thread(path[0].correct, parts[0], correction.strip())
        except UsageError as error:
            raise HTTPException(400, f"Invalid request: {error}") from None
        except ResourceError:
            raise HTTPException(403, "The corrections cannot be written.") from None

    def guess(self, text: str) -> Guess:
        """Detect the language of a text.

        Args:
            text: any text.

        Returns:
            The most probable source language.
        """
        return self.detector.detect(text)[0]

    def language(self, code: str) -> str:
        """Find a language by any usual spelling of its code.

        Args:
            code: the client's spelling.

        Returns:
            The server's code.

        Raises:
            HTTPException: 400, no model knows the language.
        """
        known = self.catalog.find(code)
        if known is None:
            raise HTTPException(400, f"{code[:40]} is not supported")
        return known

    def check_size(self, order: Order, most_characters: int | None = None) -> None:
        """Refuse a request that is too large, before any work is done for it.

        Args:
            order: the request.
            most_characters: bound in place of the usual one, for files.

        Raises:
            HTTPException: 400, with the bound that is exceeded.
        """
        limits = self.limits
        most = most_characters or limits.characters
        num_characters = sum(map(len, order.texts))
        if most_characters is None and len(order.texts) > limits.texts:
            raise HTTPException(400, f"Invalid request: {len(order.texts)} texts exceed the limit of {limits.texts}")
        if num_characters > most:
            raise HTTPException(400, f"Invalid request: request ({num_characters}) exceeds text limit ({most})")
        if order.num_alternatives > limits.alternatives:
            raise HTTPException(400, f"Invalid request: at most {limits.alternatives} alternatives")
        work = num_characters * (1 + order.num_alternatives)
        if most_characters is None and work > limits.work:
            raise HTTPException(400, f"Invalid request: characters times outputs ({work}) exceed {limits.work}")

    async def _translate_texts(
        self, texts: Sequence[str], source: str, target: str, order: Order, deadline: float
    ) -> list[Outputs]:
        """Best translation and alternatives of each text in one language.

        Raises:
            HTTPException: 400, no chain of models leads to the target.
        """
        if source == target:
            return [(text,) for text in texts]
        path = self.catalog.path(source, target)
        if path is None:
            raise HTTPException(400, f"{target} ({target}) is not available as a target language from {source}")
        layouts = [_take_apart(text, order.is_html, path[0]) for text in texts]
        wanted = [sentence for layout in layouts for sentence in layout.sentences]
        outputs = await self._chain(path, wanted, 1 + order.num_alternatives, deadline)
        answers: list[Outputs] = []
        start = 0
        for layout in layouts:
            stop = start + len(layout.sentences)
            answers.append(_variants(layout, outputs[start:stop], 1 + order.num_alternatives))
            start = stop
        return answers

    async def _chain(
        self, path: Sequence[Translator], texts: Sequence[str], nbest: int, deadline: float
    ) -> list[Outputs]:
        """Outputs of the last model of a chain; the models before it give one output each."""
        for translator in path[:-1]:
            outputs = await self._translate_filled(translator, texts, 1, deadline)
            texts = [each[0] for each in outputs]
        return await self._translate_filled(path[-1], texts, nbest, deadline)

    async def _translate_filled(
        self, translator: Translator, texts: Sequence[str], nbest: int, deadline: float
    ) -> list[Outputs]:
        """Outputs of each text; that of a blank one, which a model of a chain may give, is empty."""
        filled = [text for text in texts if text.strip()]
        outputs = iter(await self.batcher.translate(translator, filled, nbest, deadline))
        return [next(outputs) if text.strip() else ("",) for text in texts]


def _take_apart(text: str, is_html: bool, translator: Translator) -> _Layout:
    nodes = markup.parse(text) if is_html else [markup.Node(text, is_text=True)]
    return _Layout(nodes, [translator.split(node.text) for node in nodes if node.is_text], is_html)


def _variants(layout: _Layout, outputs: Sequence[Outputs], number: int) -> Outputs:
    """Whole texts from the n-best outputs of their sentences: the k-th outputs of all sentences make the k-th text."""
    texts = [layout.write([each[min(rank, len(each) - 1)] for each in outputs]) for rank in range(number)]
    return tuple(dict.fromkeys(texts))

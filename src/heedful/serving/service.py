"""Work on requests: languages, sentences, markup, alternatives and chains of translators, and models of other tasks."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar, final

from starlette.exceptions import HTTPException

from heedful.documents.html import HtmlMarkup
from heedful.documents.markup_rules import TagHandling
from heedful.errors import ResourceError, UsageError
from heedful.predictors.tagged import tagged_output
from heedful.predictors.translator import Translator
from heedful.serving.batching import Batcher
from heedful.serving.catalog import Catalog
from heedful.serving.detection import Detector, Guess
from heedful.serving.keys import Keys
from heedful.serving.limits import Budget, Limits
from heedful.serving.metrics import Metrics
from heedful.serving.suggestions import LinksFile, Suggestions
from heedful.serving.work import Outputs, Sentence, ServedFault, Translating, Work
from heedful.text.segments import Text
from heedful.text.tagged_text import TaggedText

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
_SHORT_MARKUP: Final = 10_000
"""Characters of markup that are parsed in the event loop, because that takes less than a few milliseconds."""
_FEW_PASSAGES: Final = 50
_FEW_CHARACTERS: Final = 10_000
"""Passages and characters that are divided in the event loop, because that takes less than a few milliseconds."""
_DETECTED: Final = 5000
"""Characters of a document by which its language is detected."""
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
    markup: TagHandling | None = None
    """Treatment of tags; None = the texts are plain."""
    num_alternatives: int = 0
    needs_faults: bool = False
    """True to name the faults of sentences in the answer."""


@final
@dataclass(frozen=True)
class ServedText:
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
    fault: ServedFault = ""
    """Fault of the first sentence that has one; empty where there is none."""


class _PassageOutputs(NamedTuple):
    """Outputs for one passage."""

    texts: list[TaggedText]
    """Texts, best first."""
    fault: ServedFault
    """Fault of the first sentence that has one; empty where there is none."""


class Document(Protocol):
    """Text or markup taken apart."""

    @property
    def passages(self) -> list[TaggedText]:
        """Texts to translate, with their inline tags."""
        ...

    def write(self, outputs: Sequence[TaggedText]) -> str:
        """Write the text with translated passages."""
        ...


@final
@dataclass(frozen=True)
class _PlainText:
    """Plain text as a document of one passage."""

    text: str

    @property
    def passages(self) -> list[TaggedText]:
        return [TaggedText(self.text)]

    def write(self, outputs: Sequence[TaggedText]) -> str:
        return outputs[0].text


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

    async def translate(self, order: Order, most_characters: int | None = None) -> list[ServedText]:
        """Translate the texts of a request.

        Args:
            most_characters: bound in place of the usual one, for files.

        Returns:
            One answer for each text.

        Raises:
            HTTPException: 400 for a language or size that is not supported, 503 when there is no time.
        """
        self.check_size(order, most_characters)
        target = self.language(order.target)
        deadline = self._deadline()
        guesses = [self.guess(text) if order.source == AUTO else None for text in order.texts]
        languages = [guess.language if guess else self.language(order.source) for guess in guesses]
        groups = dict.fromkeys(languages)
        answers: list[ServedText] = [ServedText("")] * len(order.texts)

        async def translate_group(source: str) -> None:
            rows = [row for row, language in enumerate(languages) if language == source]
            texts = [order.texts[row] for row in rows]
            outputs = await self._translate_texts(texts, source, target, order, deadline)
            for row, ((best, *others), fault) in zip(rows, outputs, strict=True):
                answers[row] = ServedText(best, tuple(others), guesses[row], source, target, fault)

        if len(groups) == 1:
            await translate_group(languages[0])
        else:
            await asyncio.gather(*map(translate_group, groups))
        return answers

    async def translate_with(self, translator: Translator, texts: Sequence[str]) -> list[str]:
        """Translate texts with a model of the client's choice.

        Returns:
            Best translation of each text.

        Raises:
            HTTPException: 400 for a size that is not supported, 503 when there is no time.
        """
        self.check_texts(texts)
        passages = [TaggedText(text) for text in texts]
        outputs = await self._translate_passages((translator,), passages, 1, self._deadline())
        return [each.texts[0].text for each in outputs]

    async def run(self, work: Work[Any, ItemT, ResultT], items: Sequence[ItemT]) -> list[ResultT]:
        """Do some work on the items of a request.

        Returns:
            Result of each item.

        Raises:
            HTTPException: 503 when there is no time.
        """
        return await self.batcher.run(work, items, self._deadline())

    async def translate_passages(
        self, passages: Sequence[TaggedText], source: str, target: str
    ) -> tuple[list[TaggedText], Counter[ServedFault]]:
        """Translate the passages of a document.

        Args:
            source: language code as the client spells it, or "auto".
            target: language code as the client spells it.

        Returns:
            Translation of each passage, with the same tags, and how many passages have which fault.

        Raises:
            HTTPException: 400 for a language or size that is not supported, 503 when there is no time.
        """
        texts = [passage.text for passage in passages]
        self.check_size(Order(texts, source, target), self.limits.file_characters)
        code = self.language(target)
        deadline = self._deadline()
        language = self.guess("\n".join(texts)[:_DETECTED]).language if source == AUTO else self.language(source)
        if language == code:
            return [*passages], Counter()
        outputs = await self._translate_passages(self._path(language, code), passages, 1, deadline)
        return [each.texts[0] for each in outputs], Counter(each.fault for each in outputs if each.fault)

    async def correct(self, text: str, correction: str, source: str, target: str) -> None:
        """Correct the translation of a sentence, from the next request on.

        Args:
            source: code of a language of this server, or "auto".
            target: code of a language of this server.

        Raises:
            HTTPException: 400, the text is not one sentence with one line of translation, or no single model
                translates between these languages; 403, the corrections cannot be written.
        """
        path = self.catalog.path(self.guess(text).language if source == AUTO else source, target)
        if path is None or len(path) != 1:
            raise HTTPException(400, f"Invalid request: no model translates from {source} to {target} in one step")
        parts = [segment.reading for segment in path[0].split(text).segments]
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

        Returns:
            The most probable source language.

        Raises:
            HTTPException: 400, the server has no translator.
        """
        if not self.catalog.translators:
            raise HTTPException(400, "Invalid request: no model of this server translates")
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
            most_characters: bound in place of the usual one, for files.

        Raises:
            HTTPException: 400, with the bound that is exceeded.
        """
        limits = self.limits
        num_characters = self.check_texts(order.texts, most_characters)
        if order.num_alternatives > limits.alternatives:
            raise HTTPException(400, f"Invalid request: at most {limits.alternatives} alternatives")
        work = num_characters * (1 + order.num_alternatives)
        if most_characters is None and work > limits.work:
            raise HTTPException(400, f"Invalid request: characters times outputs ({work}) exceed {limits.work}")

    def check_texts(self, texts: Sequence[str], most_characters: int | None = None) -> int:
        """Refuse too many texts, or too many characters.

        Args:
            most_characters: bound in place of the usual one, for files, which may have any number of texts.

        Returns:
            The number of characters.

        Raises:
            HTTPException: 400, with the bound that is exceeded.
        """
        limits = self.limits
        most = most_characters or limits.characters
        num_characters = sum(map(len, texts))
        if most_characters is None and len(texts) > limits.texts:
            raise HTTPException(400, f"Invalid request: {len(texts)} texts exceed the limit of {limits.texts}")
        if num_characters > most:
            raise HTTPException(400, f"Invalid request: request ({num_characters}) exceeds text limit ({most})")
        return num_characters

    def _deadline(self) -> float:
        return time.monotonic() + self.limits.answer_seconds

    async def _translate_texts(
        self, texts: Sequence[str], source: str, target: str, order: Order, deadline: float
    ) -> list[tuple[tuple[str, ...], ServedFault]]:
        """Best translation and alternatives of each text in one language, and its fault.

        Raises:
            HTTPException: 400, no chain of models leads to the target.
        """
        if source == target:
            return [((text,), "") for text in texts]
        path = self._path(source, target)
        documents = [await self._opened(text, order) for text in texts]
        passages = [passage for document in documents for passage in document.passages]
        number = 1 + order.num_alternatives
        outputs = iter(await self._translate_passages(path, passages, number, deadline))
        answers: list[tuple[tuple[str, ...], ServedFault]] = []
        for document in documents:
            variants = [next(outputs) for _ in document.passages]
            written = [document.write([each.texts[rank] for each in variants]) for rank in range(number)]
            answers.append((tuple(dict.fromkeys(written)), _first_fault(variants)))
        return answers

    def _path(self, source: str, target: str) -> Sequence[Translator]:
        path = self.catalog.path(source, target)
        if path is None:
            raise HTTPException(400, f"{target} ({target}) is not available as a target language from {source}")
        return path

    async def _translate_passages(
        self, path: Sequence[Translator], passages: Sequence[TaggedText], nbest: int, deadline: float
    ) -> list[_PassageOutputs]:
        """Outputs of a chain of models for each passage; the models before the last give one output each."""
        steps: list[list[_PassageOutputs]] = []
        for translator in path[:-1]:
            steps.append(await self._pass(translator, passages, 1, deadline))
            passages = [each.texts[0] for each in steps[-1]]
        steps.append(await self._pass(path[-1], passages, nbest, deadline))
        return [_PassageOutputs(each[-1].texts, _first_fault(each)) for each in zip(*steps, strict=True)]

    async def _opened(self, text: str, order: Order) -> Document:
        if order.markup is None:
            return _PlainText(text)
        # Long documents are parsed beside the event loop, which answers others meanwhile.
        read = partial(_read_markup, text, order.markup)
        return read() if len(text) < _SHORT_MARKUP else await asyncio.to_thread(read)

    async def _pass(
        self, translator: Translator, passages: Sequence[TaggedText], nbest: int, deadline: float
    ) -> list[_PassageOutputs]:
        """Outputs of a model for each passage: the k-th outputs of its segments make its k-th output."""
        texts = await _beside(passages, lambda: [translator.split(one.text, kept_spans=one.kept) for one in passages])
        sentences = [Sentence.of(segment) for text in texts for segment in text.segments]
        filled = [one for one in sentences if one.text.strip()]  # a model of a chain may give blank ones
        needs_links = any(passage.tags for passage in passages) and translator.has_attention
        translated = iter(await self.batcher.run(Translating(translator, nbest, needs_links), filled, deadline))
        outputs = iter([next(translated) if one.text.strip() else Outputs(("",)) for one in sentences])

        def joined() -> list[_PassageOutputs]:
            results: list[_PassageOutputs] = []
            for passage, text in zip(passages, texts, strict=True):
                ours = [next(outputs) for _ in text.segments]
                ranked = [_ranked(passage, text, ours, rank) for rank in range(nbest)]
                results.append(_PassageOutputs(ranked, _first_fault(ours)))
            return results

        return await _beside(passages, joined)


async def _beside(passages: Sequence[TaggedText], work: Callable[[], ResultT]) -> ResultT:
    """Result of some work on passages, beside the event loop where there are many."""
    is_little = len(passages) <= _FEW_PASSAGES and sum(len(one.text) for one in passages) <= _FEW_CHARACTERS
    return work() if is_little else await asyncio.to_thread(work)


def _read_markup(text: str, handling: TagHandling) -> HtmlMarkup:
    return HtmlMarkup(text, handling.rules(text))


def _first_fault(outputs: Sequence[Outputs | _PassageOutputs]) -> ServedFault:
    faults: list[ServedFault] = [*(one.fault for one in outputs if one.fault), ""]
    return faults[0]


def _ranked(passage: TaggedText, text: Text, outputs: Sequence[Outputs], rank: int) -> TaggedText:
    texts = [each.texts[min(rank, len(each.texts) - 1)] for each in outputs]
    links = [each.links if texts[index] == each.texts[0] else () for index, each in enumerate(outputs)]
    return tagged_output(passage, text, texts, links)

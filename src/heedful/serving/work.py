"""Work of a server on the items of requests: what one model does with them, a batch at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, NamedTuple, TypeVar, final

from heedful.predictors.answerer import Answer, Answerer
from heedful.predictors.captioner import Caption, Captioner
from heedful.predictors.classifier import Classification, Classifier, EncodedText
from heedful.predictors.interface import Predictor
from heedful.predictors.output_links import links_of
from heedful.predictors.translation import Translation
from heedful.predictors.translator import Translator
from heedful.text.degenerate import Fault
from heedful.text.kept import MARKUP
from heedful.text.segments import Segment
from heedful.text.stand_ins import Span
from heedful.text.stories import Story
from heedful.text.tag_placement import CharacterLink

ServedFault = Literal[Fault, "lost"]
"""Fault for which a sentence stands untranslated, or lost: its translation lacks a span that should stay as it is."""
ModelT = TypeVar("ModelT", bound=Predictor)
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class Work(ABC, Generic[ModelT, ItemT, ResultT]):
    """Kind of work of one model. Items of equal works are computed in one batch."""

    model: ModelT
    most_items: ClassVar[int] = 64
    """Items of a batch."""

    @abstractmethod
    def size(self, item: ItemT) -> int:
        """Count the characters of an item."""

    @abstractmethod
    def run(self, items: Sequence[ItemT], cancelled: Callable[[], bool]) -> Sequence[ResultT]:
        """Compute the results of items.

        Args:
            cancelled: called between steps; once it returns True, nobody needs the results.
        """

    def cost(self, items: Sequence[ItemT]) -> int:
        """Estimate how the time that items take compares with that of others of the same model."""
        return sum(max(1, self.size(item)) for item in items)


class Outputs(NamedTuple):
    """Outputs for one sentence."""

    texts: tuple[str, ...]
    """Texts, best first."""
    links: tuple[CharacterLink, ...] = ()
    """Links between the sentence and the best text; none unless requested."""
    fault: ServedFault = ""
    """Fault of the best text."""


class Sentence(NamedTuple):
    """Sentence to translate."""

    text: str
    kept: tuple[Span, ...] = ()
    """Spans that stay as they are, beside those that rules find."""

    @classmethod
    def of(cls, segment: Segment) -> "Sentence":
        """Take the sentence of a segment."""
        return cls(segment.reading, tuple((one.start, one.end) for one in segment.kept if one.kind == MARKUP))


@final
@dataclass(frozen=True)
class Translating(Work[Translator, Sentence, Outputs]):
    """Translation of sentences, none of them blank."""

    num_outputs: int = 1
    needs_links: bool = False
    """Whether the words of the best outputs are linked to those of the sentences."""

    def size(self, item: Sentence) -> int:
        return len(item.text)

    def cost(self, items: Sequence[Sentence]) -> int:
        return self.num_outputs * super().cost(items)

    def run(self, items: Sequence[Sentence], cancelled: Callable[[], bool]) -> list[Outputs]:
        translations = self.model.translate(
            [item.text for item in items],
            nbest=self.num_outputs,
            attention=self.needs_links,
            cancelled=cancelled,
            segments="line",
            kept_spans=[item.kept for item in items],
        )
        return [self._outputs(each) for each in translations]

    def _outputs(self, translation: Translation) -> Outputs:
        texts = tuple(one.text for one in translation.alternatives)
        fault: ServedFault = translation.fault or ("lost" if translation.lost else "")
        if not self.needs_links:
            return Outputs(texts, fault=fault)
        shift, lexicon = self.model.alignment_shift, self.model.tables.lexicon
        return Outputs(texts, tuple(links_of(translation, shift, lexicon)), fault)


@final
@dataclass(frozen=True)
class Classifying(Work[Classifier, str, Classification]):
    """Classification of texts."""

    def size(self, item: str) -> int:
        return len(item)

    def run(self, items: Sequence[str], cancelled: Callable[[], bool]) -> list[Classification]:
        return self.model.classify(items)


@final
@dataclass(frozen=True)
class Encoding(Work[Classifier, str, EncodedText]):
    """Encoding of texts as vectors."""

    def size(self, item: str) -> int:
        return len(item)

    def run(self, items: Sequence[str], cancelled: Callable[[], bool]) -> list[EncodedText]:
        return [*self.model.encode_stream(items)]


@final
@dataclass(frozen=True)
class Answering(Work[Answerer, Story, Answer]):
    """Answers to questions about facts."""

    def size(self, item: Story) -> int:
        return len(item.question) + sum(map(len, item.facts))

    def run(self, items: Sequence[Story], cancelled: Callable[[], bool]) -> list[Answer]:
        return self.model.answer(items)


@final
@dataclass(frozen=True)
class Captioning(Work[Captioner, bytes, Caption]):
    """Captions of pictures, each the content of a file."""

    most_items: ClassVar[int] = 8

    def size(self, item: bytes) -> int:
        return 1

    def run(self, items: Sequence[bytes], cancelled: Callable[[], bool]) -> list[Caption]:
        return self.model.caption(items, cancelled=cancelled)

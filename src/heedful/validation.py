"""Validation while training: loss on gold targets, scores of greedy outputs, and a few sentences to look at."""

from typing import Final, final

from heedful.data.encoded import EncodedCorpus, EncodedSide
from heedful.data.prepare import EvaluationSet, Prepared
from heedful.evaluation.evaluate import quick_scores
from heedful.experiment import Experiment
from heedful.models.engine import torch_backend
from heedful.models.interface import Seq2Seq
from heedful.runtime.engine import decode_sorted
from heedful.runtime.scored_pairs import encode_source
from heedful.search.config import SearchConfig
from heedful.text.vocabulary import EOS
from heedful.training.likelihood import log_likelihood
from heedful.training.loop import Validation

VALIDATION_SOURCES: Final = 1000
VALIDATION_TOKENS: Final = 8192


@final
class Validator:
    """Scores a model by its loss on gold targets and by what it says."""

    def __init__(self, prepared: Prepared, experiment: Experiment, target_language: str) -> None:
        """Encode the validation set once.

        Args:
            prepared: tokenizers and the set; its first 1,000 sources are used.
            experiment: whose search and text settings.
            target_language: chooses BLEU's tokenizer.
        """
        self._dev: Final = EvaluationSet(
            prepared.dev.sources[:VALIDATION_SOURCES], prepared.dev.references[:VALIDATION_SOURCES]
        )
        self._experiment: Final = experiment
        self._target_tokenizer: Final = prepared.target_tokenizer
        self._language: Final = target_language
        self._sources: Final = [
            encode_source(prepared.source_tokenizer, s, experiment.text)[0] for s in self._dev.sources
        ]
        most = experiment.text.max_tokens - 1
        gold = [[*prepared.target_tokenizer.encode(texts[0])[:most], EOS] for texts in self._dev.references]
        self._corpus: Final = EncodedCorpus(EncodedSide.of([s.tolist() for s in self._sources]), EncodedSide.of(gold))
        by_length = sorted(range(len(self._dev)), key=lambda i: len(self._sources[i]))
        # Short, middling and long ones; the middle is the one sample that is shown while training.
        self._shown: Final = [*dict.fromkeys(by_length[len(by_length) * tenth // 10] for tenth in (5, 1, 3, 7, 9))]

    def __call__(self, model: Seq2Seq) -> Validation:
        """Validate by loss and by greedy decoding.

        Args:
            model: in evaluation mode.

        Returns:
            "loss", "bleu", "chrf", "exact_match" and "token_error_rate", and a sample.
        """
        greedy = SearchConfig(beam=1, max_length_ratio=2.0, max_length_offset=20)
        backend = torch_backend(model, self._experiment.text.max_tokens)
        decoded = decode_sorted(backend, self._sources, greedy, batch_tokens=VALIDATION_TOKENS)
        outputs = [self._target_tokenizer.decode(found[0].token_ids) for found in decoded]
        scores = quick_scores(outputs, self._dev.references, self._language)
        texts = self._dev.sources, [texts[0] for texts in self._dev.references], outputs
        middle, *others = ((texts[0][i], texts[1][i], texts[2][i]) for i in self._shown)
        loss = log_likelihood(model, self._corpus).loss
        place = len(others) // 2
        return Validation({"loss": loss, **scores}, middle, (*others[:place], middle, *others[place:]))

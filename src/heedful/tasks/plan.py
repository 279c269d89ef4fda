"""Plan of a training: model size, batches, learning rate and validations that suit the corpus and the time there is.

Without a limit of time, the corpus decides: the smaller it is, the smaller the model and its batches. With a limit,
training makes enough updates to learn from, by Muon, warms up for a twentieth of them, lands at a learning rate of zero
when the time is over, and spends little of the time on validations. Where a step takes a fixed time whatever its size,
as on a GPU, batches grow until that time no longer matters, and the learning rate with them.
"""

from dataclasses import dataclass, replace
from math import inf, sqrt
from typing import Final, Literal, final

from heedful.config.base import Tree, merge
from heedful.data.prepare import PronunciationPairs
from heedful.evaluation.summaries import SUMMARISED_CHARACTERS
from heedful.models.hard_attention import HardAttentionConfig
from heedful.models.table import PRESETS
from heedful.models.transformer import TransformerConfig
from heedful.tasks.experiment import Experiment
from heedful.tasks.throughput import Throughput, largest_batch, rate_growth
from heedful.text.tokenizer import Units
from heedful.training.config import TrainingConfig

Size = Literal["small", "tiny", "mini"]
SIZES: Final[dict[Size, tuple[int, float]]] = {"small": (5_000, 1.0), "tiny": (500, 0.27), "mini": (0, 0.1)}
"""Transformers by preset, the largest first: fewest pairs each is trained on, and cost of a token relative to the
first."""
_SIZED: Final = ("num_encoder_layers", "num_decoder_layers", "model_size", "num_heads", "feedforward_size")
LEARNING_RATE: Final = 1e-3
"""Peak learning rate after the usual warm-up."""
FULL_WARMUP: Final = 4000
"""Warm-up of Vaswani et al. 2017, section 5.3: the peak is proportional to 1 / sqrt(warm-up), so that the rate falls
along the same curve after any warm-up."""
MOST_LEARNING_RATE: Final = 6e-3
MOST_RATE: Final = 2e-2
"""Largest learning rate of a batch that grew."""
MUON_RATE: Final = 1e-2
WIDE_RATE: Final = 3e-3
"""Peak learning rate of Muon for Transformers of `WIDE` and more, which learn far less at the usual one."""
WIDE: Final = 256
Landing = Literal["adam", "muon"]
"""Optimizers whose learning rate is planned, and falls to zero at the end of a limited time."""
LANDING_SCHEDULE: Final = "linear"
LANDING_AVERAGE: Final = 0.0
"""No average of weights: where the rate falls to zero, the last weights are better than any average of earlier ones."""
WANTED_STEPS: Final = 1200
"""Number of updates that a limited time is divided into, if need be by smaller batches."""
LEAST_TOKENS: Final = 256
FEW_EPOCHS: Final = 12
"""Number of epochs of the largest model below which a dropout of 0.1 is enough; of 0.2 below twice as many. A model
whose tokens cost a part of those of the largest learns by heart so much later."""
FEW_LETTER_EPOCHS: Final = 8
"""Number of epochs below which letters are learned without any dropout: of 2,000 English words, 33.8 % are wrong after
five epochs without it, 35.9 % with 0.1 (docs/log.md)."""
FEW_PAIRS: Final = 800
FEW_PAIRS_EPOCHS: Final = 75
"""Number of epochs in which hard attention learns `FEW_PAIRS` pairs."""
EPOCHS_RATE: Final = 2e-3
"""Peak learning rate of a training of so many epochs."""
NOISE: Final = 0.25
"""Share of the pairs of sentences that are changed as people write them, in a training that sees each pair often."""
NOISE_PAIRS: Final = 10_000
NOISE_EPOCHS: Final = 10
"""Numbers of pairs and of epochs from which a model that reads changed pairs too is better on clean ones as well."""
WANTED_EPOCHS: Final = 14
WANTED_TOKENS: Final = 20_000_000
"""Number of target tokens, if fewer than those of the wanted epochs, that a larger model needs to be worth its time."""


@final
@dataclass(frozen=True)
class CorpusSize:
    """Size of the training pairs."""

    num_pairs: int
    num_target_tokens: int
    """Number of target tokens, EOS included."""
    num_positions: int
    """Sum of the lengths of the longer sides, as batches count them."""

    @property
    def sizes(self) -> list[Size]:
        """Presets of Transformers that suit the corpus, the largest first."""
        return [size for size, (fewest, _) in SIZES.items() if self.num_pairs >= fewest]


@final
@dataclass(frozen=True)
class TrainingPlan:
    """Settings of a training that follow from its corpus and its time."""

    preset: str
    """Preset of the model; empty = another kind than the Transformer."""
    batch_tokens: int
    learning_rate: float
    warmup_steps: int
    validate_every: int
    """Number of updates between validations."""
    validation_items: int = 0
    """Number of validation items; 0 = the usual number."""
    num_epochs: float = inf
    """Number of passes over the corpus that fit in the time."""

    @property
    def most_dropout(self) -> float:
        """Largest dropout that a training of so few epochs needs, in which no pair is seen often."""
        costs = {size: cost for size, (_, cost) in SIZES.items()}
        num_epochs = self.num_epochs * costs.get(self.preset, 1.0)
        return 0.1 if num_epochs < FEW_EPOCHS else 0.2 if num_epochs < 2 * FEW_EPOCHS else 1.0

    def settings(self) -> Tree:
        """List the settings.

        Returns:
            Values for `heedful.tasks.experiment.load_experiment`.
        """
        training = {
            "batch_tokens": self.batch_tokens,
            "validate_every": self.validate_every,
            "validation_items": self.validation_items,
            "optimizer": {"learning_rate": self.learning_rate, "schedule": {"warmup_steps": self.warmup_steps}},
        }
        sizes = PRESETS[self.preset].model_dump(mode="json", exclude_unset=True) if self.preset else {}
        return {"model": sizes, "training": training}


def plan_training(
    size: CorpusSize,
    is_sized: bool = True,
    pace: Throughput | None = None,
    batch_tokens: int = 0,
    optimizer: Landing | Literal[""] = "",
) -> TrainingPlan:
    """Plan a training.

    Args:
        is_sized: whether the size of a Transformer is chosen too.
        pace: limit of time, and speeds of the training that was planned without one; None = no limit, and a step that
            costs in proportion to its size.
        batch_tokens: largest number of positions of a batch; 0 = chosen.
        optimizer: optimizer whose learning rate is chosen; empty = Adam's, without a limit of time.
    """
    usual_tokens = max(512, min(4096, size.num_target_tokens // 220 // 64 * 64))
    preset = size.sizes[0] if is_sized else ""
    positions_per_unit = size.num_positions / max(1, size.num_target_tokens)
    # Positions whose computation takes as long as the fixed part of a step.
    balanced = 0.0 if pace is None else pace.balanced_units * positions_per_unit
    most_tokens = _grown(usual_tokens, balanced, size, pace)
    if pace is None or not pace.seconds:
        return _unlimited(size, preset, batch_tokens or most_tokens, usual_tokens, batch_tokens, optimizer, pace)
    steps_per_epoch = max(1, size.num_target_tokens // usual_tokens)
    warmup_steps = max(400, min(4000, 2 * steps_per_epoch))
    num_tokens = pace.num_units
    if is_sized:
        preset, num_tokens = _affordable(size, num_tokens, most_tokens / (most_tokens + balanced))
        balanced *= num_tokens / pace.num_units
        most_tokens = _grown(usual_tokens, balanced, size, pace)
    num_positions = num_tokens * size.num_positions / size.num_target_tokens
    is_chosen = not batch_tokens
    if is_chosen:
        wanted = int(num_positions / WANTED_STEPS - balanced) // 64 * 64
        # Where the fixed part is four fifths of a step, a smaller batch would bring hardly any more steps.
        least_tokens = max(LEAST_TOKENS, min(most_tokens, int(balanced / 4) // 64 * 64))
        batch_tokens = min(most_tokens, max(least_tokens, wanted))
    num_steps = int(num_positions / (batch_tokens + balanced))
    learning_rate = _muon_rate(preset and PRESETS[preset]) if optimizer == "muon" else LEARNING_RATE
    if optimizer == "muon":
        warmup_steps = max(1, min(warmup_steps, num_steps // 20))
    elif num_steps < 10 * warmup_steps:
        warmup_steps = max(1, num_steps // 10)
        learning_rate = min(MOST_LEARNING_RATE, LEARNING_RATE * sqrt(FULL_WARMUP / warmup_steps))
    if is_chosen:
        learning_rate = min(MOST_RATE, learning_rate * rate_growth(batch_tokens, usual_tokens))
    validate_every = max(1, num_steps // pace.num_validations)
    num_epochs = num_tokens / size.num_target_tokens * (batch_tokens / (batch_tokens + balanced))
    return TrainingPlan(
        preset, batch_tokens, learning_rate, warmup_steps, validate_every, pace.validation_items, num_epochs
    )


def _grown(usual_tokens: int, balanced: float, size: CorpusSize, pace: Throughput | None) -> int:
    """Largest batch that is worth its number of updates, a multiple of 64 positions if it is not the usual one."""
    tokens = largest_batch(usual_tokens, balanced, size.num_positions, inf if pace is None else pace.most_tokens)
    return tokens if tokens == usual_tokens else max(64, tokens // 64 * 64)


def _unlimited(
    size: CorpusSize,
    preset: str,
    batch_tokens: int,
    usual_tokens: int,
    by_hand: int,
    optimizer: Landing | Literal[""],
    pace: Throughput | None,
) -> TrainingPlan:
    """Plan of a training without a limit of time."""
    learned_tokens = usual_tokens if by_hand else batch_tokens
    steps_per_epoch = max(1, size.num_target_tokens // learned_tokens)
    warmup_steps = max(400, min(4000, 2 * steps_per_epoch))
    validate_every = max(100, min(1000, steps_per_epoch))
    if pace is not None:
        units = batch_tokens * size.num_target_tokens / max(1, size.num_positions)
        validate_every = max(validate_every, pace.least_interval(units))
    learning_rate = _muon_rate(preset and PRESETS[preset]) if optimizer == "muon" else LEARNING_RATE
    learning_rate *= rate_growth(learned_tokens, usual_tokens)
    return TrainingPlan(preset, batch_tokens, learning_rate, warmup_steps, validate_every)


def _affordable(size: CorpusSize, num_tokens: float, share: float) -> tuple[Size, float]:
    """Larger of the two models that suit a corpus if it learns from enough tokens in the time, else the smaller one.

    Args:
        num_tokens: number of tokens that the larger model can be trained on in the time, if steps had no fixed part.
        share: part of the time that is not the fixed part of steps.

    Returns:
        The model's preset, and the number of tokens that it can be trained on.
    """
    larger, *smaller = size.sizes[:2]
    if not smaller or num_tokens * share >= min(WANTED_EPOCHS * size.num_target_tokens, WANTED_TOKENS):
        return larger, num_tokens
    return smaller[0], num_tokens * SIZES[larger][1] / SIZES[smaller[0]][1]


def replan(size: CorpusSize, experiment: Experiment, pace: Throughput, is_named: bool = False) -> TrainingPlan:
    """Plan a training again, now for the measured speeds and a limit of time; what the user chose stays as it is.

    Args:
        experiment: configuration with the settings of the plan without a limit, except those that the user chose.
        is_named: whether the user named the preset, so that the model keeps its size.
    """
    training, optimizer, usual = experiment.training, experiment.training.optimizer, plan_training(size)
    is_sized = not is_named and _has_size(experiment, size.sizes[0])
    batch_tokens = 0 if training.batch_tokens == usual.batch_tokens else training.batch_tokens
    kind = landing_optimizer(experiment)
    plan = plan_training(size, is_sized, pace, batch_tokens, kind)
    if kind == "muon" and not is_sized:
        growth = 1.0 if batch_tokens else rate_growth(plan.batch_tokens, usual.batch_tokens)
        plan = replace(plan, learning_rate=_muon_rate(experiment.model) * growth)
    is_usual = optimizer.schedule.kind == LANDING_SCHEDULE and optimizer.schedule.warmup_steps == usual.warmup_steps
    # Muon's rate depends on the model, Adam's on the schedule; without a limit of time, on the batch alone.
    is_unlimited = not pace.seconds and optimizer.kind == "adam" and optimizer.learning_rate == usual.learning_rate
    is_planned = kind == "muon" or (kind == "adam" and is_usual) or is_unlimited
    return plan if is_planned else replace(plan, learning_rate=optimizer.learning_rate)


def landing_optimizer(experiment: Experiment) -> Landing | Literal[""]:
    """Return the optimizer whose learning rate a plan chooses.

    Returns:
        "adam" or "muon"; empty without a limit of time, or with an optimizer that has a rate and schedule of its own.
    """
    training = experiment.training
    kind = training.optimizer.kind
    return kind if training.max_minutes and (kind == "adam" or kind == "muon") else ""


def _muon_rate(model: object) -> float:
    """Peak learning rate of Muon for a model."""
    return WIDE_RATE if isinstance(model, TransformerConfig) and model.model_size >= WIDE else MUON_RATE


def _has_size(experiment: Experiment, preset: Size) -> bool:
    model, file_defaults = experiment.model, PRESETS[preset]
    return isinstance(model, TransformerConfig) and all(
        getattr(model, name) == getattr(file_defaults, name) for name in _SIZED
    )


def _landing_epochs(size: CorpusSize) -> Tree:
    """Settings of a training of hard attention whose rate falls to zero after a number of epochs that suits the corpus.

    The number of pairs that are seen grows with the square root of the corpus.
    """
    num_epochs = round(FEW_PAIRS_EPOCHS * sqrt(FEW_PAIRS / size.num_pairs))
    batch_tokens = 256 if size.num_pairs < 10 * FEW_PAIRS else 512
    num_steps = max(1, num_epochs * size.num_positions // batch_tokens)
    optimizer = {
        "learning_rate": EPOCHS_RATE,
        "schedule": {"kind": LANDING_SCHEDULE, "warmup_steps": max(1, num_steps // 20)},
    }
    return {
        "training": {
            "max_epochs": max(10, min(300, num_epochs)),
            "batch_tokens": batch_tokens,
            "validate_every": max(1, num_steps // 10),
            "optimizer": optimizer,
            "average": LANDING_AVERAGE,
        }
    }


SUMMARY_BATCHES: Final = 200
"""Number of batches of an epoch of summaries, whose sources are much longer than their targets."""
MOST_SUMMARY_TOKENS: Final = 8192
FEW_SUMMARIES: Final = 11_000
SUMMARY_EPOCHS: Final = 9
"""Number of epochs in which `FEW_SUMMARIES` pairs are learned; fewer pairs take more, as their square root."""
SPARE_TOKENS: Final = 20
"""Tokens that a summary may have beyond a quarter more than the characters of the longest one that was seen."""
SHORT: Final = 6
"""Tokens of an average target, EOS included, below which BLEU has little to count: it looks at four words in a row."""


def adapt_units(units: Units, pronunciations: PronunciationPairs | None = None) -> Tree:
    """Choose settings by token units: for characters, a small recurrent network or, for few phones, hard attention.

    Short items of characters are mostly rewritten from left to right, which a recurrent network learns several times
    sooner than a Transformer. Letters are pronounced from left to right without exception, so that attention that
    never goes back learns it from the fewest words.

    Args:
        units: token units that suit the data.
        pronunciations: notation of the targets; None = they are no pronunciations.

    Returns:
        Values for `load_experiment`.
    """
    if units != "characters":
        return {}
    has_spaces, are_few = pronunciations or (False, False)
    kind = "hard_attention" if are_few else "rnnsearch"
    sizes = PRESETS[f"{kind}-tiny"].model_dump(mode="json", exclude_unset=True)
    text: Tree = {"source_units": units, "target_units": "words" if has_spaces else units}
    if pronunciations and not has_spaces:
        text["shared"] = False  # a letter is no phone, even if they look alike
    return {"text": text, "model": {**sizes, "kind": kind}}


def adapt_summaries(most_characters: int = 0) -> Tree:
    """Choose settings for summaries: a recurrent network that copies words of its source and covers all of it.

    Without copying, the names and numbers of a text do not reach its summary (docs/results.md). The longest summary,
    not the length of its source, says how long an output may become.

    Args:
        most_characters: characters of the longest summary, which are at least as many as its tokens; 0 = not known.

    Returns:
        Values for `load_experiment`.
    """
    attention = {
        "score": "additive",
        "window": "global",
        "hidden_size": 256,
        "has_coverage": True,
        "coverage_weight": 1.0,
    }
    model = {
        "kind": "luong",
        "num_layers": 1,
        "embedding_size": 128,
        "is_bidirectional": True,
        "is_source_reversed": False,
        "has_copy": True,
        "attention": attention,
    }
    text = {"cut_sources": True, "max_tokens": 400, "max_characters": SUMMARISED_CHARACTERS}
    search: dict[str, float] = {"no_repeat_ngram_size": 3}
    if most_characters:
        search |= {"max_length_ratio": 0.0, "max_length_offset": SPARE_TOKENS + most_characters * 5 // 4}
    return {"model": model, "text": text, "search": search}


def _summary_tokens(size: CorpusSize) -> int:
    """Positions of a batch of summaries."""
    return max(512, min(MOST_SUMMARY_TOKENS, size.num_positions // SUMMARY_BATCHES // 64 * 64))


def _landing_summaries(size: CorpusSize, training: TrainingConfig) -> Tree:
    """Settings of a training of summaries without a limit of time, whose rate falls to zero at its end."""
    steps_per_epoch = max(1, size.num_positions // _summary_tokens(size))
    num_epochs = max(3, min(60, round(SUMMARY_EPOCHS * sqrt(FEW_SUMMARIES / size.num_pairs))))
    num_steps = training.max_steps or (training.max_epochs or num_epochs) * steps_per_epoch
    schedule = {"kind": LANDING_SCHEDULE, "warmup_steps": max(1, num_steps // 20)}
    return {
        **({} if training.is_limited else {"max_epochs": num_epochs}),
        "validate_every": max(1, num_steps // 10),
        "optimizer": {"kind": "muon", "learning_rate": MUON_RATE, "schedule": schedule},
        "average": LANDING_AVERAGE,
    }


def adapt(size: CorpusSize, experiment: Experiment, pace: Throughput | None = None, is_named: bool = False) -> Tree:
    """Choose settings by the size of a corpus: the smaller it is, the smaller the batches and the larger the dropout.

    Args:
        experiment: configuration before these settings; with a pace, the one that the pace was measured with.
        pace: limit of time and speeds; None = no limit of time.
        is_named: whether the user named the preset, so that the model keeps its size.

    Returns:
        Values for `load_experiment`.
    """
    num_pairs, text, training = size.num_pairs, experiment.text, experiment.training
    is_transformer = isinstance(experiment.model, TransformerConfig)
    optimizer = landing_optimizer(experiment)
    if pace is None:
        if optimizer and training.parallel == "data":
            optimizer = "muon"
        batch_tokens = _summary_tokens(size) if text.cut_sources else 0
        plan = plan_training(size, is_transformer, batch_tokens=batch_tokens, optimizer=optimizer)
    else:
        plan = replan(size, experiment, pace, is_named)
    if training.max_steps:
        plan = replace(plan, warmup_steps=min(plan.warmup_steps, max(1, training.max_steps // 2)))
    dropout = 0.3 if num_pairs < 50_000 else 0.2 if num_pairs < 500_000 else 0.1
    if text.target_units == "characters":
        dropout = 0.1  # a few dozen tokens are learned from far fewer pairs than thousands of pieces
    dropout = min(dropout, plan.most_dropout)
    if text.source_units == "characters" and plan.num_epochs < FEW_LETTER_EPOCHS:
        dropout = 0.0
    # An output of characters without spaces is a single token, so a token error rate would show no early progress.
    select_by = {"pieces": "bleu", "words": "token_error_rate", "characters": "character_error_rate"}[text.target_units]
    if select_by == "bleu" and size.num_target_tokens < SHORT * num_pairs:
        select_by = "chrf"
    training_settings = {"select_by": select_by, "noise": _noise(size, experiment, plan.num_epochs)}
    settings = merge(plan.settings(), {"model": {"dropout": dropout}, "training": training_settings})
    if isinstance(experiment.model, HardAttentionConfig) and not training.is_limited:
        settings = merge(settings, _landing_epochs(size))
    if text.cut_sources and not training.max_minutes and training.parallel == "data":
        settings = merge(settings, {"training": _landing_summaries(size, training)})
    if optimizer:
        landing = {"optimizer": {"kind": optimizer, "schedule": {"kind": LANDING_SCHEDULE}}, "average": LANDING_AVERAGE}
        settings = merge(settings, {"training": landing})
    return settings


def _noise(size: CorpusSize, experiment: Experiment, num_epochs: float) -> float:
    """Share of the pairs that are changed, which is measured for Transformers of sentences in pieces alone."""
    text, training = experiment.text, experiment.training
    has_sentences = text.source_units == text.target_units == "pieces" and not text.split_sentences
    is_suited = isinstance(experiment.model, TransformerConfig) and has_sentences and not text.cut_sources
    is_seen_often = size.num_pairs >= NOISE_PAIRS and num_epochs >= NOISE_EPOCHS
    return NOISE if is_suited and is_seen_often and not training.alignment_weight else 0.0

"""The plan of a training: it follows the corpus and the time, and the user's own settings win."""

import pytest

from heedful.config.base import merge
from heedful.models.table import PRESETS
from heedful.tasks.experiment import Experiment
from heedful.tasks.plan import (
    LEARNING_RATE,
    MOST_LEARNING_RATE,
    MUON_RATE,
    NOISE,
    SIZES,
    WANTED_STEPS,
    WIDE_RATE,
    CorpusSize,
    Landing,
    TrainingPlan,
    adapt,
    adapt_units,
    plan_training,
    replan,
)
from heedful.tasks.throughput import Throughput
from tests.requests import load_experiment

SIZES_OF_CORPORA = [(20, 12), (300, 15), (1_000, 15), (4_999, 15), (30_000, 14), (120_000, 11), (1_000_000, 25)]
MINUTES = [0.5, 3, 10, 45, 600]
SPEEDS = [50.0, 2_000.0, 40_000.0]


def corpus(num_pairs: int, length: int = 15) -> CorpusSize:
    return CorpusSize(num_pairs, num_pairs * length, num_pairs * (length + 2))


def pace(minutes: float, speed: float = 3_000.0) -> Throughput:
    return Throughput(60.0 * minutes, speed, 30.0)


def num_steps(plan: TrainingPlan, size: CorpusSize, pace: Throughput) -> float:
    """Updates that the planned model makes in the time."""
    costs = {name: cost for name, (_, cost) in SIZES.items()}
    num_tokens = pace.num_units * costs[size.sizes[0]] / costs[plan.preset] if plan.preset else pace.num_units
    return num_tokens * size.num_positions / size.num_target_tokens / plan.batch_tokens


@pytest.mark.parametrize(("num_pairs", "length"), SIZES_OF_CORPORA)
@pytest.mark.parametrize("minutes", MINUTES)
@pytest.mark.parametrize("speed", SPEEDS)
@pytest.mark.parametrize("is_sized", [True, False])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_limited_time_is_used(
    num_pairs: int, length: int, minutes: float, speed: float, is_sized: bool, optimizer: Landing
):
    size, measured = corpus(num_pairs, length), pace(minutes, speed)
    plan = plan_training(size, is_sized, measured, optimizer=optimizer)
    usual = plan_training(size, is_sized)
    steps = num_steps(plan, size, measured)
    assert plan.warmup_steps <= max(1, steps / 10)  # no run ends in its warm-up
    assert plan.validate_every <= max(1, steps / 4)  # and none before it was seen to learn
    assert plan.validate_every >= int(steps) // 10  # without losing its time in validations
    assert plan.warmup_steps <= usual.warmup_steps
    assert plan.batch_tokens <= usual.batch_tokens
    # Smaller batches before fewer updates.
    assert steps >= 0.8 * WANTED_STEPS or plan.batch_tokens < 320
    if optimizer == "muon":
        assert plan.learning_rate == (WIDE_RATE if plan.preset == "small" else MUON_RATE)
    else:
        assert LEARNING_RATE <= plan.learning_rate <= MOST_LEARNING_RATE
    if optimizer == "adam" and steps >= 10 * usual.warmup_steps + 10:
        assert (plan.learning_rate, plan.warmup_steps) == (usual.learning_rate, usual.warmup_steps)
    assert plan.validation_items * plan.validation_items <= plan.validation_items * 1000


def test_the_model_grows_with_the_corpus():
    chosen = [plan_training(corpus(number)).preset for number in (20, 499, 500, 4_999, 5_000, 1_000_000)]
    assert chosen == ["mini", "mini", "tiny", "tiny", "small", "small"]
    sizes = (200, 200, True)
    counts = [
        sum(each.numel() for each in load_experiment(preset).model.build(*sizes).parameters()) for preset in SIZES
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 200_000


def test_the_model_shrinks_with_the_time():
    size = corpus(30_000)
    chosen = [plan_training(size, pace=pace(minutes)).preset for minutes in (3, 5, 20, 600)]
    assert chosen == ["tiny", "tiny", "tiny", "small"]


def test_a_longer_time_never_makes_less_of_a_model():
    for number, length in SIZES_OF_CORPORA:
        size = corpus(number, length)
        order = [*SIZES]
        ranks = [order.index(plan_training(size, pace=pace(minutes)).preset) for minutes in MINUTES]  # type: ignore
        assert ranks == sorted(ranks, reverse=True)


def test_what_was_tried_by_hand_is_planned():
    """Chinese phrases to pinyin in three minutes: batches of 768, a rate of 0.006 and a warm-up of 100 learned."""
    plan = plan_training(CorpusSize(119_526, 1_400_000, 1_400_000), False, Throughput(180.0, 6_500.0, 100.0))
    assert 500 <= plan.batch_tokens <= 1000
    assert 0.004 <= plan.learning_rate <= 0.006
    assert 80 <= plan.warmup_steps <= 150
    assert 100 <= plan.validation_items <= 500


def resolved(size: CorpusSize, *settings: str, preset: str = "") -> tuple[Experiment, Experiment]:
    """The configuration by the corpus alone, and with three minutes."""
    settings = ("training.max_minutes=3", *settings)
    first = load_experiment(preset, settings=settings)
    by_corpus = load_experiment(preset, settings=settings, adapted=adapt(size, first))
    return by_corpus, load_experiment(preset, settings=settings, adapted=adapt(size, by_corpus, pace(3), bool(preset)))


def test_the_users_own_settings_win():
    size = corpus(30_000)
    for preset in ("small", "base", "mini"):
        assert [each.model.kind for each in resolved(size, preset=preset)] == ["transformer"] * 2
        for each, dropout in zip(resolved(size, preset=preset), (0.3, 0.1), strict=True):
            wanted = PRESETS[preset].model_dump() | {"dropout": dropout}
            assert each.model.model_dump() == wanted
    _, limited = resolved(size, "training.batch_tokens=320", "training.optimizer.schedule.warmup_steps=7")
    assert (limited.training.batch_tokens, limited.training.optimizer.schedule.warmup_steps) == (320, 7)
    assert limited.training.optimizer.learning_rate == MUON_RATE
    _, limited = resolved(size, "training.optimizer.learning_rate=0.5")
    assert limited.training.optimizer.learning_rate == 0.5


@pytest.mark.parametrize(
    ("num_pairs", "settings", "noise"),
    [
        (30_000, (), NOISE),
        (30_000, ("training.noise=0.1",), 0.1),
        (30_000, ("training.alignment_weight=0.1",), 0.0),
        (30_000, ("text.target_units=characters",), 0.0),
        (9_000, (), 0.0),
    ],
)
def test_sentences_that_are_seen_often_are_read_with_noise(num_pairs: int, settings: tuple[str, ...], noise: float):
    first = load_experiment(settings=settings)
    chosen = load_experiment(settings=settings, adapted=adapt(corpus(num_pairs), first))
    assert chosen.training.noise == noise
    limited = resolved(corpus(30_000), *settings)[1].training.noise
    assert limited == (0.1 if noise == 0.1 else 0.0), "three minutes are too few epochs"


def test_a_limited_time_is_trained_by_muon_and_lands_at_zero():
    size = corpus(30_000)
    for each in resolved(size):
        optimizer = each.training.optimizer
        assert (optimizer.kind, optimizer.schedule.kind) == ("muon", "linear")
    unlimited = load_experiment(adapted=adapt(size, load_experiment())).training.optimizer
    assert (unlimited.kind, unlimited.schedule.kind, unlimited.learning_rate) == ("adam", "inverse_sqrt", 1e-3)


def test_wide_models_learn_at_a_lower_rate():
    size = corpus(30_000)
    rates = {
        name: resolved(size, preset=name)[1].training.optimizer.learning_rate
        for name in ("base", "small", "tiny", "mini")
    }
    assert rates == {"base": WIDE_RATE, "small": WIDE_RATE, "tiny": MUON_RATE, "mini": MUON_RATE}
    plans = [plan_training(size, True, pace(minutes), optimizer="muon") for minutes in (3, 600)]
    assert [(plan.preset, plan.learning_rate) for plan in plans] == [("tiny", MUON_RATE), ("small", WIDE_RATE)]


def test_a_user_may_choose_adam_or_another_schedule():
    size = corpus(30_000)
    for each in resolved(size, "training.optimizer.kind=adam"):
        assert (each.training.optimizer.kind, each.training.optimizer.schedule.kind) == ("adam", "linear")
    assert LEARNING_RATE < each.training.optimizer.learning_rate <= MOST_LEARNING_RATE
    for each in resolved(size, "training.optimizer.schedule.kind=cosine"):
        assert (each.training.optimizer.kind, each.training.optimizer.schedule.kind) == ("muon", "cosine")
    for each in resolved(size, "training.parallel=sharded"):
        assert (each.training.optimizer.kind, each.training.optimizer.schedule.kind) == ("adam", "linear")


def test_dropout_grows_with_the_number_of_epochs():
    size = corpus(30_000)
    plans = [plan_training(size, True, pace(minutes), optimizer="muon") for minutes in (3, 20, 600)]
    assert [plan.most_dropout for plan in plans] == sorted(plan.most_dropout for plan in plans)
    assert (plans[0].most_dropout, plans[-1].most_dropout) == (0.1, 1.0)


@pytest.mark.parametrize(("kind", "rate"), [("sgd", 1.0), ("adadelta", 1.0)])
def test_another_optimizer_keeps_its_own_rate(kind: str, rate: float):
    for each in resolved(corpus(30_000), f"training.optimizer.kind={kind}"):
        assert each.training.optimizer.learning_rate == rate


def test_a_batch_by_hand_counts_in_the_plan():
    size = corpus(30_000)
    by_corpus, _ = resolved(size, "training.batch_tokens=4096")
    planned = replan(size, by_corpus, pace(3))
    assert planned.batch_tokens == 4096
    assert planned.warmup_steps < resolved(size)[1].training.optimizer.schedule.warmup_steps


def test_short_texts_keep_their_recurrent_network():
    size, suited = corpus(20, 8), adapt_units("characters")
    first = load_experiment(adapted=suited)
    assert load_experiment(adapted=merge(suited, adapt(size, first))).model == merge_dropout("rnnsearch-tiny")


def merge_dropout(preset: str) -> object:
    return PRESETS[preset].__class__.model_validate(PRESETS[preset].model_dump() | {"dropout": 0.1})


def test_short_targets_are_selected_by_letters():
    for length, metric in [(4, "chrf"), (5, "chrf"), (6, "bleu"), (15, "bleu")]:
        for each in resolved(corpus(30_000, length)):
            assert each.training.select_by == metric
    for each in resolved(corpus(30_000, 4), "text.target_units=words"):
        assert each.training.select_by == "token_error_rate"

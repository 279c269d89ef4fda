"""Summaries: the model that suits them is chosen, long sources are cut, and a text is summarised as a whole."""

import random
from pathlib import Path

from heedful.data.corpus import find_pairs
from heedful.pages.record import read_run, read_validations
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.runs.settings import SettingsLayers
from heedful.tasks.experiment import Experiment
from heedful.tasks.plan import CorpusSize, adapt
from heedful.tasks.throughput import Throughput
from heedful.tasks.translation import TranslationTask
from tests.requests import make_request, train

SMALL = (
    *("model.embedding_size=8", "model.hidden_size=8", "model.attention.hidden_size=8", "training.max_steps=3"),
    *("training.export=false", "text.max_tokens=60", "text.vocabulary_size=300"),
)


def write_articles(path: Path, number: int, num_sentences: int) -> Path:
    """Articles whose first sentences say what the headline says."""
    source = random.Random(1)
    names = ("Ada Stone", "Boris Novak", "Chen Li", "Dora Silva", "Emil Larsen")
    places = ("harbour", "library", "old mill", "railway museum", "town hall")
    verbs = ("opened", "closed", "sold", "painted", "repaired")
    rows: list[str] = []
    for _ in range(number):
        facts = [(source.choice(names), source.choice(verbs), source.choice(places)) for _ in range(num_sentences)]
        text = " ".join(f"On a cold day last week {who} {verb} the {place} ." for who, verb, place in facts)
        rows.append(f"{text}\t{' '.join(facts[0])}\n")
    path.write_text("".join(rows), "utf-8")
    return path


def chosen(path: Path, *settings: str, preset: str = "") -> Experiment:
    task, request = TranslationTask(), make_request((path,), settings=settings, preset=preset)
    layers = SettingsLayers(task, request)
    return layers.resolve(task.file_defaults({"train": find_pairs([path], (1, 2), True)}, layers.resolve))


def test_summaries_take_a_model_that_copies_and_other_pairs_and_choices_do_not(tmp_path: Path):
    articles = write_articles(tmp_path / "articles.tsv", 30, 4)
    lines = articles.read_text("utf-8").splitlines()
    others = tmp_path / "pairs.tsv"
    others.write_text("".join(f"{line.split(chr(9))[0]}\tAm Montag {'regnete es ' * 9}\n" for line in lines), "utf-8")
    summary = chosen(articles)
    assert summary.model.model_dump()["has_copy"]
    assert summary.text.cut_sources
    assert summary.search.no_repeat_ngram_size == 3
    longest = max(len(line.split("\t")[1]) for line in lines)
    assert (summary.search.max_length_ratio, summary.search.max_length_offset) == (0.0, 20 + longest * 5 // 4)
    assert chosen(articles, "search.max_length_offset=9").search.max_length_offset == 9
    kinds = {
        "transformer": [chosen(others), chosen(articles, preset="small"), chosen(articles, "text.shared=false")],
        "luong": [chosen(articles, preset="luong"), chosen(articles, "model.has_copy=false", "model.kind=luong")],
    }
    for kind, experiments in kinds.items():
        for experiment in experiments:
            assert experiment.model.kind == kind
            assert not experiment.model.model_dump()["has_copy"]
            assert not experiment.text.cut_sources


def test_a_validation_of_an_untrained_model_ends_soon_after_the_longest_reference(tmp_path: Path):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"{'word ' * 40}{number}\t{number} yes\n" for number in range(40)), "utf-8")
    settings = ("model.kind=rnnsearch", "model.embedding_size=8", "model.hidden_size=8", "training.max_steps=1")
    settings = (*settings, "training.export=false", "training.validate_every=1", "text.max_tokens=400")
    request = make_request((pairs,), tmp_path / "m", settings=settings)
    train(request, lambda progress: None, lambda info: None, lambda text: None)
    outputs = [sample[2] for line in read_validations(tmp_path / "m") for sample in line["samples"]]
    assert outputs
    assert max(len(output) for output in outputs) <= 120  # far fewer than lengths of sources allow


def test_batches_and_epochs_suit_summaries_and_the_rate_falls_to_zero(tmp_path: Path):
    articles = write_articles(tmp_path / "articles.tsv", 30, 4)
    size = CorpusSize(num_pairs=11_433, num_target_tokens=140_000, num_positions=970_000)
    for settings, max_epochs, warmup_steps in (((), 9, 90), (("training.max_steps=1600",), 0, 80)):
        experiment = chosen(articles, *settings)
        training = adapt(size, experiment)["training"]
        assert training["batch_tokens"] == 4_800
        assert training.get("max_epochs", 0) == max_epochs
        schedule = {"kind": "linear", "warmup_steps": warmup_steps}
        assert training["optimizer"] == {"kind": "muon", "learning_rate": 0.01, "schedule": schedule}
    few = adapt(CorpusSize(500, 6_000, 40_000), chosen(articles))["training"]
    assert (few["batch_tokens"], few["max_epochs"]) == (512, 42)
    other = adapt(size, chosen(articles, preset="luong"))["training"]
    assert "kind" not in other["optimizer"]
    timed = chosen(articles, "training.max_minutes=5", "training.batch_tokens=4800")
    pace = Throughput(seconds=300.0, tokens_per_second=400.0, items_per_second=20.0)
    assert adapt(size, timed, pace)["training"]["batch_tokens"] == 4_800


def test_long_articles_are_cut_and_told_and_a_text_is_summarised_as_a_whole(tmp_path: Path):
    articles = write_articles(tmp_path / "articles.tsv", 60, 40)
    told: list[str] = []
    request = make_request((articles,), tmp_path / "m", SMALL)
    train(request, lambda progress: None, lambda info: told.extend(info.data.report), lambda text: None)
    assert any("sources cut after 60 tokens, as in use" in line for line in told)
    assert not any("left out of training" in line for line in told)
    translator = load(tmp_path / "m", kind=Translator)
    text = articles.read_text("utf-8").partition("\t")[0]
    assert len(translator.split(text).segments) == 1
    (output,) = translator.translate([text])
    assert output.was_cut


def test_summaries_are_scored_beside_the_first_words_of_their_sources(tmp_path: Path):
    articles = write_articles(tmp_path / "articles.tsv", 60, 4)
    train(make_request((articles,), tmp_path / "m", SMALL), lambda progress: None, lambda info: None, lambda text: None)
    translator = load(tmp_path / "m", kind=Translator)
    summary = translator.measure(translator.read_items((articles,), (1, 2))).summary()
    assert [line.split()[0] for line in summary.splitlines()[1:4]] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert "the first 5 words of each source alone have ROUGE-1 " in summary
    run = read_run(tmp_path / "m")
    assert run.metric in ("bleu", "chrf")  # ROUGE is beside it
    for line in run.validations:
        assert [*line["scores"]] == ["loss", *translator.metrics, run.metric]


def test_a_rate_that_has_fallen_keeps_its_limit_where_none_is_named(tmp_path: Path):
    articles = write_articles(tmp_path / "articles.tsv", 30, 4)
    earlier = chosen(articles, "training.max_minutes=5", "training.optimizer.schedule.kind=linear")

    def again(*settings: str) -> Experiment:
        return SettingsLayers(TranslationTask(), make_request((articles,), settings=settings), earlier).resolve({})

    assert again().training.max_minutes == 5
    assert again("training.max_minutes=9").training.max_minutes == 9
    assert again("training.max_steps=7").training.max_minutes == 0


def test_a_limit_that_is_new_takes_the_place_of_the_epochs_of_a_training_without_one(tmp_path: Path):
    articles = write_articles(tmp_path / "articles.tsv", 30, 4)
    schedule, epochs = "training.optimizer.schedule.kind=linear", "training.max_epochs=9"

    def resumed(earlier: Experiment, *settings: str, chosen_epochs: int = 0) -> Experiment:
        request = make_request((articles,), settings=settings)
        return SettingsLayers(TranslationTask(), request, earlier).resolve({"training": {"max_epochs": chosen_epochs}})

    unlimited = chosen(articles, epochs, schedule)
    assert resumed(unlimited).training.max_epochs == 9
    longer = resumed(unlimited, "training.max_minutes=5").training
    assert (longer.max_minutes, longer.max_epochs) == (5, 0)
    assert resumed(unlimited, "training.max_minutes=5", chosen_epochs=27).training.max_epochs == 27
    # The same command resumes the same training.
    limited = chosen(articles, epochs, schedule, "training.max_minutes=5")
    assert resumed(limited, "training.max_minutes=5").training.max_epochs == 9
    assert resumed(limited, "training.max_minutes=8").training.max_epochs == 0


def test_labels_in_place_of_targets_are_told(tmp_path: Path):
    path = tmp_path / "reviews.csv"
    rows = (f"text {number},{'good' if number % 2 else 'bad'}\n" for number in range(60))
    path.write_text(f"text,label\n{''.join(rows)}", "utf-8")
    task, request = TranslationTask(), make_request((path,))
    told = [*task.warnings(request, SettingsLayers(task, request).resolve({}))]
    assert any(
        line.endswith("targets are 2 labels; to learn them: heedful train --task classification") for line in told
    )
    path.write_text("".join(f"text {number},Text {number}\n" for number in range(60)), "utf-8")
    assert not any("--task" in line for line in task.warnings(request, SettingsLayers(task, request).resolve({})))

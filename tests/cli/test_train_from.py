"""`heedful train --from`: going on from a trained model."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import heedful as package
from heedful.config.base import read_toml
from heedful.data.encoded import EncodedCorpus
from heedful.data.mixing import MIX
from heedful.engines.folder import commit, open_folder
from heedful.files.formats import KEY
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.tasks.translation import TranslationTask
from tests.cli.command import Done, heedful
from tests.cli.conftest import Trained, write_pairs
from tests.export.marian_folder import write_folder
from tests.thorough import thorough

LIMITS = ("--set", "training.max_steps=4", "--set", "training.validate_every=2", "--set", "training.export=false")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "new.tsv", 60, seed=5)


@pytest.fixture
def origin(trained: Trained, tmp_path: Path) -> Path:
    shutil.copytree(trained.model, tmp_path / "words.model")
    return tmp_path / "words.model"


def go_on(pairs: Path, origin: Path, *more: object) -> Done:
    return heedful("train", pairs, "--from", origin, "--out", pairs.parent / "new.model", *LIMITS, *more)


def weights_of(model: Path) -> dict[str, torch.Tensor]:
    (path,) = model.glob("model-*.safetensors")
    return load_file(path)


def test_it_begins_with_the_weights_sizes_and_tokenizers_of_the_model(pairs: Path, origin: Path):
    done = go_on(pairs, origin, "--set", "training.optimizer.learning_rate=1e-30", "--set", "training.average=0")
    assert done.code == 0, done.err
    model = pairs.parent / "new.model"
    before, after = weights_of(origin), weights_of(model)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    for path in origin.glob("tokenizer*"):
        assert (model / path.name).read_bytes() == path.read_bytes()
    old, new = read_toml(origin / "config.toml"), read_toml(model / "config.toml")
    assert {**new["text"]} == old["text"]
    assert {**new["model"], "dropout": 0.0} == old["model"]
    assert load(model).translate(["abc"])[0].text == load(origin).translate(["abc"])[0].text


def test_it_learns_and_says_what_was_won_and_forgotten(pairs: Path, origin: Path):
    done = go_on(pairs, origin)
    assert done.code == 0, done.err
    assert f" on the training pairs, with the weights of {origin}\n" in done.err
    assert "before: character error rate " in done.err
    assert "chosen: " not in done.err
    (own,) = (line for line in done.out.split("\n") if line.startswith("own:"))
    assert " before, " in own
    assert own.endswith(f"sources of the validation set of {origin}")
    before, after = weights_of(origin), weights_of(pairs.parent / "new.model")
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_it_is_validated_four_times_as_often_as_a_new_model(pairs: Path, origin: Path):
    limits = ("--set", "training.max_steps=1", "--set", "training.export=false")
    steps: list[int] = []
    for name, more in (("new", ()), ("on", ("--from", origin))):
        done = heedful("train", pairs, "--out", pairs.parent / name, *limits, *more)
        assert done.code == 0, done.err
        steps.append(read_toml(pairs.parent / name / "config.toml")["training"]["validate_every"])
    assert steps == [100, 25]


def test_the_same_command_goes_on_and_notices_another_model(pairs: Path, origin: Path):
    assert go_on(pairs, origin).code == 0
    again = go_on(pairs, origin, "--set", "training.max_steps=6")
    assert again.code == 0, again.err
    assert "resuming at step 4" in again.err
    assert "before: " not in again.err
    facts = dict(open_folder(origin).facts)
    config = origin / "config.toml"
    config.write_text(config.read_text(encoding="utf-8") + "\n", encoding="utf-8", newline="\n")
    commit(origin, {key: value for key, value in facts.items() if key != "files"}, [*facts["files"]])
    changed = go_on(pairs, origin)
    assert changed.code == 2
    assert "trained on other data (model changed)" in changed.errors[0]


def test_a_stopped_training_goes_on_to_the_same_bits(pairs: Path, origin: Path):
    """With older pairs, kept weights and corrections, and later corrections of the first model."""
    old = write_pairs(pairs.parent / "old.tsv", 80, seed=8)
    common = ("--mix", old, "--set", "training.start_share=0.3", "--set", "training.mix_share=0.6")
    assert heedful("correct", origin, "abcabc", "cccab").code == 0
    ways = {"whole": (8,), "parts": (4, 8)}
    for name, limits in ways.items():
        for most in limits:
            out = ("--out", pairs.parent / f"{name}.model", "--set", f"training.max_steps={most}")
            done = heedful("train", pairs, "--from", origin, *LIMITS, *common, *out)
            assert done.code == 0, done.err
            assert heedful("correct", origin, "cab", name).code == 0
        assert heedful("correct", origin, "cab", "--undo").code == 0
    whole, parts = (weights_of(pairs.parent / f"{name}.model") for name in ways)
    assert all(torch.equal(whole[key], parts[key]) for key in whole)
    assert "resuming at step 4" in done.err


def encoded_pairs(model: Path, folder: str = "run/data") -> list[tuple[str, str]]:
    """The training pairs of a model, decoded."""
    translator, corpus = load(model, kind=Translator), EncodedCorpus.read(model / folder)
    sides = (corpus.source, translator.source_tokenizer), (corpus.target, translator.target_tokenizer)
    source, target = (
        [tokenizer.decode(side[i][:-1].tolist()) for i in range(len(corpus))] for side, tokenizer in sides
    )
    return [*zip(source, target, strict=True)]


@thorough
def test_corrections_are_learned_and_stay_in_force(pairs: Path, origin: Path):
    for source, correction in ("abcabc", "a"), ("abcabc", "cccab"), ("bbb", "b"):
        assert heedful("correct", origin, source, correction).code == 0
    assert heedful("correct", origin, "bbb", "--undo").code == 0
    with (origin / "corrections.jsonl").open("ab") as journal:
        journal.write(b"damaged\n")
    done = go_on(pairs, origin)
    assert done.code == 0, done.err
    assert "corrections.jsonl:5: damaged; left out, the other corrections stay in force" in done.err
    assert "1 correction added to the training pairs" in done.err
    model = pairs.parent / "new.model"
    assert encoded_pairs(model)[-1] == ("abcabc", "cccab")
    assert heedful("translate", model, "abcabc").out == "cccab\n"
    # Later corrections change no training that has begun.
    assert heedful("correct", origin, "cab", "a").code == 0
    assert heedful("correct", model, "cba", "b").code == 0
    again = go_on(pairs, origin, "--set", "training.max_steps=6")
    assert again.code == 0, again.err
    assert "resuming at step 4" in again.err
    assert heedful("translate", model, "cba").out == "b\n"
    assert encoded_pairs(model)[-1] == ("abcabc", "cccab")


def test_a_correction_of_a_held_out_source_is_not_learned(pairs: Path, origin: Path):
    held_out = pairs.parent / "dev.tsv"
    held_out.write_text("abcabc\tcbacba\n", encoding="utf-8", newline="\n")
    assert heedful("correct", origin, "abcabc", "cccab").code == 0
    done = go_on(pairs, origin, "--dev", held_out)
    assert done.code == 0, done.err
    assert "added to the training pairs" not in done.err
    assert ("abcabc", "cccab") not in encoded_pairs(pairs.parent / "new.model")


def test_corrections_of_a_refused_attempt_are_not_those_of_the_next(pairs: Path, origin: Path):
    assert heedful("correct", origin, "abcabc", "cccab").code == 0
    assert go_on(pairs, origin, "--set", "model.model_size=32").code == 2
    assert heedful("correct", origin, "--undo").code == 0
    done = go_on(pairs, origin)
    assert done.code == 0, done.err
    model = pairs.parent / "new.model"
    assert "added to the training pairs" not in done.err
    assert not (model / "corrections.jsonl").exists()


def test_learned_corrections_survive_damage_of_the_data_and_are_missed(pairs: Path, origin: Path):
    assert heedful("correct", origin, "abcabc", "cccab").code == 0
    assert go_on(pairs, origin).code == 0
    model = pairs.parent / "new.model"
    assert heedful("correct", model, "cba", "b").code == 0
    encoded = [*(model / "run/data").glob("*.safetensors")] or [*(model / "run/data").glob("*.npy")]
    for path in [*encoded, model / "run/data/prepared.json"]:
        path.write_bytes(b"damaged")
    again = go_on(pairs, origin, "--set", "training.max_steps=6")
    assert again.code == 0, again.err
    assert "prepared again from the data files" in again.err
    assert "1 correction added to the training pairs" in again.err
    assert encoded_pairs(model)[-1] == ("abcabc", "cccab")
    assert heedful("translate", model, "cba").out == "b\n"  # what was corrected since is still in force
    (model / "run/corrections.jsonl").unlink()
    changed = go_on(pairs, origin, "--set", "training.max_steps=8")
    assert changed.code == 2
    assert "trained on other data (corrections changed)" in changed.errors[0]


def test_corrected_sources_do_not_tell_what_was_forgotten(origin: Path):
    task = TranslationTask()
    items = task.own_validation(origin)
    assert heedful("correct", origin, items.sources[1], "x").code == 0
    assert task.own_validation(origin).sources == [items.sources[0], *items.sources[2:]]


def test_a_newer_journal_of_corrections_is_refused(pairs: Path, origin: Path):
    assert heedful("correct", origin, "abcabc", "cccab").code == 0
    journal = origin / "corrections.jsonl"
    journal.write_text(json.dumps({KEY: 999}) + "\n", encoding="utf-8", newline="\n")
    newer = go_on(pairs, origin)
    assert (newer.code, len(newer.errors)) == (3, 1)
    assert "newer heedful" in newer.errors[0]


def test_a_model_without_its_data_can_be_gone_on_from(pairs: Path, origin: Path):
    shutil.rmtree(origin / "run")
    done = go_on(pairs, origin)
    assert done.code == 0, done.err
    assert f"own:   {origin} has no validation set of its own" in done.out


def test_an_imported_marian_model_can_be_gone_on_from(tmp_path: Path):
    imported = tmp_path / "opus.model"
    assert heedful("import", write_folder(tmp_path / "opus"), "--out", imported).code == 0
    words = [one + two + three for one in "abcd" for two in "abcd" for three in "abcd"]
    pairs = tmp_path / "new.tsv"
    pairs.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words), encoding="utf-8")
    done = go_on(pairs, imported)
    assert done.code == 0, done.err
    assert "has no validation set of its own" in done.out
    assert heedful("translate", tmp_path / "new.model", "abc").code == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--preset", "tiny"), "--preset tiny: the sizes are those of --from"),
        (("--set", "model.model_size=32"), "model.model_size: 32, but"),
        (("--set", "text.target_units=pieces"), "text.target_units: pieces, but"),
        (("--task", "classification"), "a translation model, not one for classification"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(pairs: Path, origin: Path, more: tuple[str, ...], message: str):
    done = go_on(pairs, origin, *more)
    assert (done.code, len(done.errors)) == (2, 1)
    assert message in done.errors[0]
    assert not (pairs.parent / "new.model" / "heedful.json").exists()


def test_no_model_a_newer_one_or_the_same_folder_is_refused(pairs: Path, origin: Path):
    assert go_on(pairs, pairs.parent / "none.model").code == 2
    same = heedful("train", pairs, "--from", origin, "--out", origin, *LIMITS)
    assert same.code == 2
    assert "the trained model would replace it; choose another --out" in same.errors[0]
    path = origin / "heedful.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    (key,) = (key for key in manifest if "version" in key or key == "format")
    path.write_text(json.dumps({**manifest, key: 999}), encoding="utf-8")
    newer = go_on(pairs, origin)
    assert newer.code == 3
    assert "newer heedful" in newer.errors[0]


@thorough
def test_pieces_of_another_writing_are_told_too(tmp_path: Path):
    """Pieces have no unknown characters: they fall back to bytes."""
    words = [f"{one}{two}{three} {two}{one}" for one in "abcde" for two in "abcde" for three in "abc"]
    old, new = tmp_path / "old.tsv", tmp_path / "new.tsv"
    old.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words), encoding="utf-8")
    new.write_text("".join(f"天地{word}\t{word}\n" for word in words), encoding="utf-8")
    pieces = ("--set", "text.source_units=pieces", "--set", "text.target_units=pieces")
    assert heedful("train", old, "--preset", "tiny", "--out", tmp_path / "old.model", *pieces, *LIMITS).code == 0
    done = heedful("train", new, "--from", tmp_path / "old.model", "--out", tmp_path / "new.model", *LIMITS)
    assert done.code == 0, done.err
    assert "of the source tokens are unknown to" in done.err
    assert "of the target tokens are unknown to" not in done.err


def test_data_in_another_writing_are_told(tmp_path: Path, origin: Path):
    path = tmp_path / "new.tsv"
    path.write_text("".join(f"天{one}{two}\t{one}{two}\n" for one in "abcdef" for two in "abcdef"), encoding="utf-8")
    done = go_on(path, origin)
    assert "of the source tokens are unknown to" in done.err


def test_only_the_named_parameters_are_trained(pairs: Path, origin: Path):
    done = go_on(pairs, origin, "--set", 'training.train=["decoder*"]')
    assert done.code == 0, done.err
    before, after = weights_of(origin), weights_of(pairs.parent / "new.model")
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert all(name.startswith("decoder") for name in changed)
    wrong = go_on(pairs, origin, "--set", 'training.train=["decodr*"]', "--out", pairs.parent / "other.model")
    assert (wrong.code, len(wrong.errors)) == (2, 1)
    assert "training.train: no parameter is named decodr*" in wrong.errors[0]


def test_the_kept_model_holds_a_share_of_the_weights_it_began_with(pairs: Path, origin: Path):
    common = ("--set", "training.average=0", "--set", "training.validate_every=4", "--set", "training.select_by=loss")
    plain = go_on(pairs, origin, *common)
    assert plain.code == 0, plain.err
    trained = weights_of(pairs.parent / "new.model")
    mixed = (*common, "--set", "training.start_share=0.4", "--out", pairs.parent / "mixed.model")
    stopped = go_on(pairs, origin, *mixed, "--set", "training.max_steps=2")
    assert stopped.code == 0, stopped.err
    done = go_on(pairs, origin, *mixed)  # resumed: the start is not forgotten
    assert done.code == 0, done.err
    before, kept = weights_of(origin), weights_of(pairs.parent / "mixed.model")
    for name, start in before.items():
        assert torch.allclose(kept[name], 0.6 * trained[name] + 0.4 * start, atol=1e-6)
    assert any(not torch.allclose(kept[name], trained[name], atol=1e-6) for name in kept)
    fresh = heedful("train", pairs, "--set", "training.start_share=0.4", "--out", pairs.parent / "fresh.model")
    assert (fresh.code, len(fresh.errors)) == (2, 1)
    assert "training.start_share: only a training that goes on from a model has it" in fresh.errors[0]


def test_older_pairs_are_mixed_in(pairs: Path, origin: Path, trained: Trained):
    done = go_on(pairs, origin, "--mix", trained.data)
    assert done.code == 0, done.err
    assert "older pairs, mixed in as 50 % of an epoch" in done.err
    again = go_on(pairs, origin, "--mix", trained.data, "--set", "training.max_steps=6")
    assert again.code == 0, again.err
    assert "resuming at step 4" in again.err
    other = write_pairs(pairs.parent / "other.tsv", 50, seed=9)
    changed = go_on(pairs, origin, "--mix", other)
    assert (changed.code, len(changed.errors)) == (2, 1)
    assert "mix" in changed.errors[0]
    guided = go_on(pairs, origin, "--mix", trained.data, "--set", "training.alignment_weight=1")
    assert "older pairs have no alignment links" in guided.errors[0]
    missing = go_on(pairs, origin, "--mix", pairs.parent / "none.tsv")
    assert (missing.code, len(missing.errors)) == (2, 1)
    labels = heedful("train", pairs, "--task", "classification", "--mix", other)
    assert "older pairs can be mixed into translation only" in labels.errors[0]


def own_sources(model: Path) -> set[str]:
    """Sources that a model was validated and tested on."""
    facts = json.loads((model / "run/data/prepared.json").read_text(encoding="utf-8"))
    return {*facts["dev"]["sources"], *facts["test"]["sources"]}


def test_older_pairs_of_held_out_sources_are_left_out(origin: Path, trained: Trained, tmp_path: Path):
    lines = dict.fromkeys(trained.data.read_text(encoding="utf-8").split("\n")[:-1])
    old = [tuple(line.split("\t")) for line in lines]
    own = own_sources(origin)
    dev, test = [pair for pair in old if pair[0] not in own][:6], [pair for pair in old if pair[0] not in own][6:12]
    new = write_pairs(tmp_path / "new.tsv", 60, seed=5)
    for name, part in (("dev", dev), ("test", test)):
        content = "".join(f"{source}\t{target}\n" for source, target in part)
        (tmp_path / f"{name}.tsv").write_text(content, encoding="utf-8")
    options = ("--mix", trained.data, "--dev", tmp_path / "dev.tsv", "--test", tmp_path / "test.tsv")
    held_out = own | {source for source, _ in (*dev, *test)}
    number = sum(source in held_out for source, _ in old)
    for most in (4, 6):
        done = go_on(new, origin, *options, "--set", f"training.max_steps={most}")
        assert done.code == 0, done.err
        assert f"{number} older pairs of held-out or corrected sources left out of training" in done.err
    mixed = encoded_pairs(tmp_path / "new.model", MIX)
    assert own
    assert sorted(mixed) == sorted(pair for pair in old if pair[0] not in held_out)
    (tmp_path / "own.tsv").write_text("".join(f"{source}\tX\n" for source in own), encoding="utf-8")
    none = go_on(new, origin, "--mix", tmp_path / "own.tsv", "--out", tmp_path / "none.model")
    assert "own.tsv: no pair can be mixed in; " in none.errors[0]


def test_an_older_pair_that_is_corrected_is_left_out(pairs: Path, origin: Path, trained: Trained):
    own = own_sources(origin)
    lines = trained.data.read_text(encoding="utf-8").split("\n")
    corrected = next(source for source in (line.split("\t")[0] for line in lines) if source not in own)
    assert heedful("correct", origin, corrected, "b").code == 0
    done = go_on(pairs, origin, "--mix", trained.data)
    assert done.code == 0, done.err
    model = pairs.parent / "new.model"
    assert corrected not in dict(encoded_pairs(model, MIX))
    assert (corrected, "b") in encoded_pairs(model)


def test_pairs_in_one_file_are_not_of_another_language(origin: Path, pairs: Path):
    facts = dict(open_folder(origin).facts)
    languages = {**{key: value for key, value in facts.items() if key != "files"}, "languages": ["de", "en"]}
    commit(origin, languages, [*facts["files"]])
    done = go_on(pairs, origin)
    assert done.code == 0, done.err
    assert "files are named" not in done.err


def test_a_model_that_reads_terms_goes_on_to_read_them(pairs: Path, origin: Path):
    options = ("--set", "training.term_share=0.5")
    assert go_on(pairs, origin, *options, "--out", pairs.parent / "terms.model").code == 0
    assert go_on(pairs, pairs.parent / "terms.model").code == 0
    assert read_toml(pairs.parent / "new.model" / "config.toml")["training"]["term_share"] == 0.5


def test_from_python(pairs: Path, origin: Path, tmp_path: Path):
    settings = {"training.max_steps": 2, "training.validate_every": 2, "training.export": False}
    model = package.train(pairs, origin=origin, out=tmp_path / "python.model", settings=settings, quiet=True)
    assert model.translate(["abc"])

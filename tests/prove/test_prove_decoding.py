"""A small part of each proof, in every run of the tests; `make prove-decoding` does it all."""

import random
from pathlib import Path

import pytest

from heedful.engines.engine import Backend
from heedful.engines.exact import Exact
from heedful.predictors.table import load
from heedful.search.interface import Hypothesis
from tests.cli.command import heedful
from tests.cli.conftest import SETTINGS, write_pairs
from tests.prove import prove_decoding as proofs
from tests.thorough import sampled


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("decoding")
    (folder / "tiny.toml").write_text(SETTINGS, encoding="utf-8")
    pairs = write_pairs(folder / "words.tsv", 60)
    made = folder / "words.model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        assert heedful("train", pairs, "--out", made, "--config", folder / "tiny.toml").code == 0
    return made


def words(number: int) -> list[str]:
    generator = random.Random(number)
    return ["".join(generator.choices("abcdef", k=generator.randint(1, 12))) for _ in range(number)]


@sampled(2)
@pytest.mark.parametrize("beam", [1, 3])
def test_exact_results_are_the_same_in_every_batch(model: Path, beam: int):
    translator = load(model)
    record = proofs.prove_batches(translator, proofs.sources_of(translator, words(20)), beam, 1, True, (1, 3, 64))
    assert record.num_compared == 60
    assert record.num_other_bits == 0
    assert record.failures == []


def test_what_is_not_exact_is_noticed(model: Path, monkeypatch: pytest.MonkeyPatch):
    translator = load(model)
    plain = Exact.decode

    def decode(self: Backend, *given: object, **named: object) -> list[list[Hypothesis]]:
        found = plain(self, *given, **named)  # type: ignore[arg-type]
        if len(found) != 3:
            return found
        return [
            [
                Hypothesis(one.token_ids, one.log_prob, one.score * (1 + 1e-15), one.token_log_probs, "eos")
                for one in each
            ]
            for each in found
        ]

    monkeypatch.setattr(Exact, "decode", decode)
    record = proofs.prove_batches(translator, proofs.sources_of(translator, words(9)), 2, 1, True, (2, 3))
    assert record.num_other_bits == len(record.failures) == 9


def test_outputs_hold_their_phrases(model: Path):
    lines = words(12)
    record = proofs.prove_phrases(load(model), lines, [line.upper()[:6] for line in lines], 2, 10)
    assert record.num_compared == 10
    assert record.failures == []


def test_near_is_not_far():
    one = Hypothesis((4, 5), -3.0, -1.0, (-1.0, -1.0, -1.0), "eos")
    assert proofs._is_near(one, Hypothesis((4, 5), -3.0, -1.00001, (-1.0, -1.0, -1.00003), "eos"))
    assert not proofs._is_near(one, Hypothesis((4, 5), -3.0, -1.1, (-1.0, -1.0, -1.3), "eos"))
    assert proofs._is_near(one, Hypothesis((4, 6), -9.0, -3.0, (-1.0, -1.00001, -7.0), "eos"))
    assert not proofs._is_near(one, Hypothesis((4, 6), -9.0, -3.0, (-1.0, -1.5, -7.0), "eos"))

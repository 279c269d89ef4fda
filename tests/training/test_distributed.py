"""One training by several processes: shares, sums, waiting, and what becomes of it when one dies."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.data.batching import make_batch
from heedful.errors import LostProcess, NonFiniteError, ResourceError, Stopped
from heedful.training import distributed, recorded_step, train_state
from heedful.training.checkpoint import CheckpointFolder
from heedful.training.distributed import Ranks, SingleProcess, _buckets
from heedful.training.loop import Trainer
from heedful.training.rank import RankInfo
from tests.cli.command import heedful
from tests.cli.conftest import SETTINGS, write_pairs
from tests.cli.test_main import ENVIRONMENT
from tests.prove import prove_ddp
from tests.prove.prove_checkpoints import Record
from tests.prove.prove_ddp import Doom, Toy, noted_losses
from tests.prove.ranks import IS_POSSIBLE, REASON, Ended, free_port, launch
from tests.prove.task_trainings import TASKS, make_corpus
from tests.thorough import sampled, thinned, thorough
from tests.training.tape import Tapes, without_cpu_loops

together = pytest.mark.skipif(not IS_POSSIBLE, reason=REASON)
CORPUS = make_corpus(20)


@pytest.fixture(autouse=True)
def _one_thread():
    """A forked child has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def told(folder: Path, size: int, body: Callable[[Ranks], object]) -> list[object]:
    """What a body says in each process, or the error that left it."""

    def run(ranks: Ranks) -> None:
        try:
            found = body(ranks)
        except Exception as error:
            found = [type(error).__name__, str(error), getattr(error, "exit_code", 0)]
        (folder / str(ranks.place.rank)).write_text(json.dumps(found), encoding="utf-8")

    ended = launch(size, run, deadline=60.0)
    assert ended.codes == [0] * size
    return [json.loads((folder / str(rank)).read_text(encoding="utf-8")) for rank in range(size)]


# ------------------------------------------------------------------------------------------------------- shares


def ranks_of(size: int) -> list[Ranks]:
    found: list[Ranks] = []
    for rank in range(size):
        ranks = SingleProcess()
        ranks.place = RankInfo(rank, size, rank)  # type: ignore[misc]
        found.append(ranks)
    return found


@pytest.mark.parametrize("num_rows", [1, 2, 3, 7])
@pytest.mark.parametrize("size", [1, 2, 4])
def test_shares_are_all_of_a_batch_and_each_row_once(num_rows: int, size: int):
    batch = make_batch(CORPUS, np.arange(num_rows))
    rows: list[tuple[list[int], list[int], list[int]]] = []
    for rank, ranks in enumerate(ranks_of(size)):
        share, is_real = ranks.share(batch)
        assert is_real == (rank < num_rows)
        assert len(share.source) >= 1
        assert share.source.shape[1] == share.source_lengths.max()
        assert share.target_in.shape == share.target_out.shape == (len(share.source), share.target_lengths.max())
        if is_real:
            assert len(share.source) in (num_rows // size, -(-num_rows // size))
            for row in range(len(share.source)):
                source, target = share.source_lengths[row], share.target_lengths[row]
                rows.append(
                    (
                        share.source[row, :source].tolist(),
                        share.target_in[row, :target].tolist(),
                        share.target_out[row, :target].tolist(),
                    )
                )
    wanted = [
        (
            batch.source[row, : batch.source_lengths[row]].tolist(),
            batch.target_in[row, : batch.target_lengths[row]].tolist(),
            batch.target_out[row, : batch.target_lengths[row]].tolist(),
        )
        for row in range(num_rows)
    ]
    assert sorted(rows) == sorted(wanted)


def test_seeds_of_dropout_differ_by_step_and_rank():
    seeds = {ranks.seed(seed, step) for ranks in ranks_of(8) for seed in (0, 1, 2**31 - 1) for step in (1, 2, 10**9)}
    assert len(seeds) == 8 * 3 * 3
    assert SingleProcess().seed(3, 5) == (3 << 32) + 5
    for seed in seeds:
        torch.manual_seed(seed)


def test_each_process_of_a_machine_has_its_own_gpu():
    assert [ranks.device("cuda") for ranks in ranks_of(2)] == ["cuda:0", "cuda:1"]
    assert [ranks.device("cuda:3") for ranks in ranks_of(2)] == ["cuda:3", "cuda:3"]
    assert [ranks.device("cpu") for ranks in ranks_of(2)] == ["cpu", "cpu"]
    assert SingleProcess().device("cuda") == "cuda"


def test_buckets_hold_every_parameter_in_order_and_one_type_each(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distributed, "_BUCKET_BYTES", 100)
    sizes = [(10, torch.float32), (20, torch.float32), (30, torch.float32), (1, torch.float64), (1, torch.float32)]
    parameters = [torch.nn.Parameter(torch.zeros(size, dtype=dtype)) for size, dtype in sizes]
    buckets = list(_buckets(parameters))
    assert [[len(parameter) for parameter in bucket] for bucket in buckets] == [[10, 20], [30], [1], [1]]
    assert list(_buckets([])) == []


# --------------------------------------------------------------------------------------------------------- talk


@together
def test_processes_differ_as_those_of_torchrun_do(tmp_path: Path):
    """Forked from one process, they would share the order of sets and of tensors of a file, and hide a wrong one."""
    assert len(set(told(tmp_path, 3, lambda ranks: os.getppid()))) == 3
    assert len(set(told(tmp_path, 3, lambda ranks: hash("a")))) == 3


@together
def test_gradients_are_added_and_numbers_exchanged(tmp_path: Path):
    def body(ranks: Ranks) -> object:
        rank = ranks.place.rank
        model = torch.nn.Linear(2, 3)
        with torch.no_grad():
            model.weight.fill_(float(rank))
        ranks.broadcast(model)
        frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        unused = torch.nn.Parameter(torch.ones(2))
        if rank == 1:
            unused.grad = torch.tensor([1.0, 2.0])
        model.weight.grad = torch.full((3, 2), 10.0**rank)
        ranks.add_gradients([model.weight, frozen, unused])
        assert model.weight.grad is not None
        assert unused.grad is not None
        sums = [model.weight.grad.tolist(), unused.grad.tolist()]
        return [model.weight.tolist(), sums, frozen.grad is None, ranks.gather(rank, math.inf)]

    for found in told(tmp_path, 3, body):
        rows = [[float(rank), math.inf] for rank in range(3)]
        assert found == [[[0.0, 0.0]] * 3, [[[111.0, 111.0]] * 3, [1.0, 2.0]], True, rows]


@together
def test_the_others_wait_for_the_first_as_long_as_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(distributed, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(distributed, "BEAT_SECONDS", 0.1)

    def body(ranks: Ranks) -> object:
        def work() -> list[float]:
            assert ranks.is_first
            time.sleep(2.0)
            return [1.5, -math.inf]

        return [ranks.first(work), ranks.first(lambda: [])]

    assert told(tmp_path, 2, body) == [[[1.5, -math.inf], []]] * 2


@together
@pytest.mark.parametrize(("error", "code"), [(ResourceError("full"), 5), (ValueError("bug"), 1)])
def test_an_error_of_the_first_ends_the_others_with_the_same_code(error: Exception, code: int, tmp_path: Path):
    def body(ranks: Ranks) -> object:
        def fail() -> list[float]:
            raise error

        return ranks.first(fail)

    first, other = told(tmp_path, 2, body)
    assert first == [type(error).__name__, str(error), getattr(error, "exit_code", 0)]
    assert other == ["EndedElsewhere", "", code]


@together
def test_who_is_lost_is_told_by_the_first_alone(tmp_path: Path):
    def body(ranks: Ranks) -> object:
        ranks.gather(0.0)
        if ranks.place.rank == 1:
            os._exit(7)
        try:
            ranks.gather(1.0)
        except Exception as error:
            found = [type(error).__name__, str(error), getattr(error, "exit_code", 0)]
            (tmp_path / str(ranks.place.rank)).write_text(json.dumps(found), encoding="utf-8")
            raise
        return None

    assert launch(3, body, deadline=60.0).codes == [5, 7, 5]
    kind, said, code = json.loads((tmp_path / "0").read_text(encoding="utf-8"))
    assert (kind, code) == ("LostProcess", LostProcess.exit_code)
    assert said.startswith("another of the 3 processes ended or is silent (")
    assert said.endswith("the same command goes on from the last checkpoint")
    assert "\n" not in said
    assert json.loads((tmp_path / "2").read_text(encoding="utf-8")) == ["EndedElsewhere", "", 5]


# ----------------------------------------------------------------------------------------------------- training


@sampled(3)
@together
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("transformer-post", {}),
        ("transformer-post", {"accumulate": 3, "clip_norm": 0.01}),
        ("rnnsearch", {"optimizer": {"kind": "sgd", "learning_rate": 0.05, "mean_over": "pairs"}}),
        # Transitions of a chain have no gradient in soft steps.
        (
            "transformer-local",
            {"optimizer": {"kind": "adam", "learning_rate": 0.001}, "soft_start": 2, "soft_share": 0.5},
        ),
        *((kind, {}) for kind in TASKS),
    ],
    ids=["batches", "accumulated", "pairs", "soft steps", *TASKS],
)
def test_two_processes_compute_what_one_does(kind: str, settings: dict[str, object], tmp_path: Path):
    toy = Toy(kind, has_chance=False, num_steps=6, settings=settings)
    assert any(len(rows) % 2 for rows in toy.trainer(tmp_path, SingleProcess())._sampler.plan(0))  # shares are uneven
    assert any(len(rows) == 1 for rows in toy.trainer(tmp_path, SingleProcess())._sampler.plan(0))  # and one is empty
    assert prove_ddp.difference(tmp_path, toy, 2) <= 1e-12


@together
@pytest.mark.parametrize("kind", ["rnnsearch", "label"])
def test_recorded_steps_of_two_processes_learn_what_launched_ones_do(kind: str, tmp_path: Path):
    """Each process records its own shares, uneven and empty ones among them; gradients are summed outside."""

    def body(ranks: Ranks) -> list[float]:
        ends, tapes = list[tuple[list[float], list[torch.Tensor]]](), Tapes()
        with pytest.MonkeyPatch.context() as patch:
            without_cpu_loops(patch)
            patch.setattr(recorded_step, "RARE", 0)  # of so few steps, few have the same shape
            for name in ("launched", "recorded"):
                if name == "recorded":
                    patch.setattr(train_state, "make_recorder", lambda device: tapes)
                trainer = Toy(kind, has_chance=False).trainer(tmp_path / name, ranks)
                losses = noted_losses(trainer)
                trainer.run()
                ends.append((losses, [each.detach().clone() for each in trainer._train_state.model.parameters()]))
        (losses, weights), (again, others) = ends
        differences = (abs(one - other) for one, other in zip(losses, again, strict=True))
        moved = ((one - other).abs().max() for one, other in zip(weights, others, strict=True))
        return [len(tapes.lengths), len(losses), max(differences), float(max(moved))]

    for name in ("launched", "recorded"):
        (tmp_path / name).mkdir()
    for found in told(tmp_path, 2, body):
        assert isinstance(found, list)
        assert len(found) == 4, found
        num_tapes, num_steps, loss, weights = found
        assert num_tapes >= 1
        assert num_steps == 12
        assert loss <= 1e-11
        assert weights <= 1e-11


@together
@pytest.mark.parametrize("kind", thinned(TASKS, 3))
def test_a_row_that_two_processes_count_is_noticed(kind: str, tmp_path: Path):
    assert prove_ddp.difference(tmp_path, Miscounting(kind, has_chance=False, num_steps=6), 2) > 1e-6


class Miscounting(Toy):
    """Training whose processes all count the row that one of them computes to fill its share."""

    def trainer(self, folder: Path, ranks: Ranks, doom: Doom | None = None) -> Trainer:
        share = ranks.share
        ranks.share = lambda batch: share(batch)._replace(is_real=True)  # type: ignore[method-assign]
        return super().trainer(folder, ranks, doom)


@together
def test_dropout_differs_between_processes_and_repeats_itself(tmp_path: Path):
    ends: list[dict[str, object]] = []
    for name, size in (("a", 2), ("b", 2), ("c", 1)):
        (tmp_path / name).mkdir()
        assert Toy().train(tmp_path / name, size).codes == [0] * size
        ends.append(prove_ddp.result(tmp_path / name))
    assert ends[0] == ends[1]
    assert ends[0] != ends[2]


DOOMS = [
    [Doom(0, "backward", "error"), Doom(0, "validation"), Doom(1, "save")],
    [
        Doom(1, "forward"),
        Doom(1, "gather", "error"),
        Doom(0, "step"),
        Doom(1, "validation"),
        Doom(0, "save", "error"),
    ],
]


@together
@pytest.mark.parametrize("dooms", thinned(DOOMS, 2), ids=["some", "others"])
def test_the_death_of_one_ends_all_and_costs_nothing(
    dooms: list[Doom], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(distributed, "SILENT_SECONDS", 3.0)
    record = Record()
    longest = prove_ddp.sweep_deaths(tmp_path, 2, dooms, record)
    assert (record.num_cases, record.failures) == (len(dooms), [])
    assert longest < 20.0


@thorough
@together
@pytest.mark.parametrize("kind", thinned(TASKS, 3))
def test_a_training_of_another_task_survives_a_death_to_the_same_bits(kind: str, tmp_path: Path):
    record = Record()
    prove_ddp.sweep_deaths(tmp_path, 2, [Doom(1, "backward")], record, Toy(kind))
    assert (record.num_cases, record.failures) == (1, [])


@together
def test_one_that_stands_still_ends_the_others(tmp_path: Path):
    record = Record()
    prove_ddp.sweep_hangs(tmp_path, [Doom(1, "forward", "hang"), Doom(0, "validation", "hang")], 2, record, 2.0)
    assert (record.num_cases, record.failures) == (2, [])


SHARDED = Toy(settings={"parallel": "sharded", "optimizer": {"learning_rate": 0.01}})


@together
def test_a_sharded_model_computes_what_one_process_does(tmp_path: Path):
    settings = {"parallel": "sharded", "accumulate": 2}
    toy = Toy(has_chance=False, num_steps=6, settings=settings)
    assert prove_ddp.difference(tmp_path, toy, 2) <= 1e-12


@thorough
@together
@pytest.mark.parametrize("kind", thinned(["transformer-pre", "transformer-learned", "rnnsearch"], 3))
def test_a_sharded_model_in_mixed_precision_is_near_to_one_process(kind: str, tmp_path: Path):
    # Loops of our own read parameters there; memory that NumPy shared could not be taken away.
    settings = {"parallel": "sharded", "precision": "bfloat16"}
    toy = Toy(kind=kind, has_chance=False, num_steps=6, settings=settings, dtype=torch.float32)
    assert 0.0 < prove_ddp.difference(tmp_path, toy, 2) <= 0.02


@thorough
@together
def test_a_sharded_training_survives_a_death_to_the_same_bits(tmp_path: Path):
    record = Record()
    prove_ddp.sweep_deaths(tmp_path, 2, [Doom(1, "backward")], record, SHARDED)
    assert (record.num_cases, record.failures) == (1, [])


@together
def test_checkpoints_are_whole_however_many_wrote_them(tmp_path: Path):
    """Begun in two sharded processes, gone on with in one: as if that one had done it all."""
    alone, parts = tmp_path / "alone", tmp_path / "parts"
    changes: dict[str, object] = {"parallel": "sharded", "optimizer": {"learning_rate": 0.01}}
    for folder in (alone, parts):
        folder.mkdir()
    Toy(has_chance=False, settings=changes).trainer(alone, SingleProcess()).run()
    assert Toy(has_chance=False, num_steps=5, settings=changes).train(parts, 2).codes == [0, 0]
    trainer = Toy(has_chance=False, settings=changes).trainer(parts, SingleProcess())
    assert trainer.resume() == 5
    trainer.run()
    ends = [CheckpointFolder(folder / "checkpoints").load_newest() for folder in (alone, parts)]
    assert ends[0] is not None
    assert ends[1] is not None
    for group, tensors in ends[0].tensors.items():
        assert tensors.keys() == ends[1].tensors[group].keys()
        for name, tensor in tensors.items():
            torch.testing.assert_close(ends[1].tensors[group][name], tensor, rtol=1e-6, atol=1e-9)


@together
def test_weights_of_the_start_are_validated_by_one_process_whole(tmp_path: Path):
    """As before a training that goes on from a model; the first process alone cannot run a sharded one."""
    for size in (1, 2):
        (tmp_path / str(size)).mkdir()
    alone = Toy().trainer(tmp_path / "1", SingleProcess()).scores()

    def body(ranks: Ranks) -> object:
        trainer = SHARDED.trainer(tmp_path / "2", ranks)
        found = trainer.scores()
        trainer.run()
        return found

    (tmp_path / "told").mkdir()
    first, other = told(tmp_path / "told", 2, body)
    assert first == pytest.approx(alone)
    assert other == {}


def _end(toy: Toy, folder: Path, plan: Callable[[Ranks, object], object]) -> Ended:
    """Train in two processes, each changed by a plan; the error that left each goes to a file."""

    def body(ranks: Ranks) -> None:
        trainer = toy.trainer(folder, ranks)
        plan(ranks, trainer)
        try:
            trainer.run()
        except Exception as error:
            (folder / f"error{ranks.place.rank}").write_text(f"{type(error).__name__}: {error}", encoding="utf-8")
            raise

    return launch(2, body, deadline=60.0)


@together
def test_a_signal_to_one_stops_all_after_the_same_step_and_all_goes_on(tmp_path: Path):
    toy = Toy()
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    toy.train(tmp_path / "whole", 2)

    def plan(ranks: Ranks, trainer: object) -> None:
        def send(module: torch.nn.Module, given: object) -> None:
            if trainer._state.step == 3 and ranks.place.rank == 1:  # type: ignore[attr-defined]
                os.kill(os.getpid(), signal.SIGTERM)

        trainer._train_state.model.register_forward_pre_hook(send)  # type: ignore[attr-defined]

    assert _end(toy, tmp_path / "parts", plan).codes == [143, 143]
    for rank in range(2):
        said = (tmp_path / "parts" / f"error{rank}").read_text(encoding="utf-8")
        assert said == "Stopped: stopped at step 3; run the same command to continue"
    assert toy.train(tmp_path / "parts", 2).codes == [0, 0]
    assert prove_ddp.result(tmp_path / "parts") == prove_ddp.result(tmp_path / "whole")


@together
def test_a_loss_that_is_not_finite_in_one_stops_all_before_the_update(tmp_path: Path):
    def plan(ranks: Ranks, trainer: object) -> None:
        def poison(gradient: torch.Tensor) -> torch.Tensor:
            is_due = trainer._state.step == 6 and ranks.place.rank == 1  # type: ignore[attr-defined]
            return gradient * math.nan if is_due else gradient

        next(trainer._train_state.model.parameters()).register_hook(poison)  # type: ignore[attr-defined]

    assert _end(Toy(), tmp_path, plan).codes == [NonFiniteError.exit_code] * 2
    checkpoint = CheckpointFolder(tmp_path / "checkpoints").load_newest()
    assert checkpoint is not None
    assert checkpoint.step == 5
    assert (tmp_path / "error0").read_text(encoding="utf-8").startswith("NonFiniteError: step 6: ")


@together
def test_a_last_save_that_fails_ends_all(tmp_path: Path):
    def plan(ranks: Ranks, trainer: object) -> None:
        def fail(checkpoint: object) -> None:
            raise ResourceError("full")

        trainer._storage._checkpoints.save = fail  # type: ignore[attr-defined]

    assert _end(Toy(num_steps=3), tmp_path, plan).codes == [5, 5]
    assert "there is no checkpoint" in (tmp_path / "error0").read_text(encoding="utf-8")


@together
def test_processes_that_see_different_folders_are_refused(tmp_path: Path):
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
    Toy(num_steps=3).trainer(tmp_path / "0", SingleProcess()).run()

    def body(ranks: Ranks) -> object:
        return Toy(num_steps=5).trainer(tmp_path / str(ranks.place.rank), ranks).resume()

    (tmp_path / "told").mkdir()
    for found in told(tmp_path / "told", 2, body):
        assert found[0] == "FileRefused"  # type: ignore[index]
        assert "give all of them access to one folder" in found[1]  # type: ignore[index]


def test_one_process_raises_what_it_always_did(tmp_path: Path):
    trainer = Toy(num_steps=3).trainer(tmp_path, SingleProcess())
    trainer._train_state.model.register_forward_pre_hook(lambda module, given: signal.raise_signal(signal.SIGINT))
    with pytest.raises(Stopped, match="stopped at step 1"):
        trainer.run()


# ---------------------------------------------------------------------------------------------------- command


def run_command(folder: Path, *more: str) -> list[tuple[int, str, str]]:
    """Train by two processes: exit code, standard output and standard error of each."""
    data = write_pairs(folder / "words.tsv", 60)
    (folder / "tiny.toml").write_bytes(SETTINGS.encode())
    command = [sys.executable, "-m", "heedful", "train", str(data), "--config", str(folder / "tiny.toml"), *more]
    command += ["--out", str(folder / "words.model")]
    environment = {**ENVIRONMENT, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    started = [
        subprocess.Popen(
            command,
            env={**environment, "OMP_NUM_THREADS": "1", "RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    ended = [process.communicate(timeout=120) for process in started]
    texts = [(out.decode(), err.decode()) for out, err in ended]
    return [(process.returncode, *text) for process, text in zip(started, texts, strict=True)]


@together
def test_the_command_trains_in_several_processes_of_which_one_speaks(tmp_path: Path):
    first, other = run_command(tmp_path)
    assert first[0] == 0, first
    assert "step 8, " in first[2]
    assert "next:  heedful translate" in first[1]
    assert other == (0, "", "")


@thorough
@together
def test_the_command_goes_on_from_a_model_in_several_processes(tmp_path: Path):
    (tmp_path / "tiny.toml").write_bytes(SETTINGS.encode())
    write_pairs(tmp_path / "old.tsv", 60, seed=1)
    done = heedful("train", tmp_path / "old.tsv", "--config", tmp_path / "tiny.toml", "--out", tmp_path / "old.model")
    assert done.code == 0
    more = ("--from", str(tmp_path / "old.model"), "--set", "training.parallel=sharded")
    first, other = run_command(tmp_path, *more)
    assert first[0] == 0, first
    assert ", with the weights of " in first[2]
    assert other == (0, "", "")


@thorough
@together
def test_a_refusal_of_several_processes_is_said_by_one(tmp_path: Path):
    first, other = run_command(tmp_path, "--set", "text.max_tokens=1")
    assert (first[0], first[2].count("heedful: error: ")) == (2, 1)
    assert other == (2, "", "")

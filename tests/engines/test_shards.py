import gzip
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from heedful.engines.shards import MANIFEST, Shard, plan_jobs, run_jobs
from heedful.errors import DataError, FileRefused, UsageError
from heedful.text.lines import read_lines

ABOUT = {"model": "abc", "search": {"beam": 5}}
TEXT = "\ufeffone\r\ntwo\n\nfour\u2028x\nfünf\n\ufeffsix\nsieben\ufffe\n".encode() + b"b\xffd\nlast"


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_bytes(TEXT)
    paths[1].write_bytes(b"x\ny\n")
    return paths


def shout(shard: Shard) -> None:
    shard.write(f"{shard.first_line + index}:{line.upper()}\n" for index, line in enumerate(shard.lines()))


def run_all(shards: list[Shard]) -> Iterable[Shard]:
    for shard in reversed(shards):
        shout(shard)
        yield shard


def wanted(path: Path) -> str:
    lines = read_lines(path, bad_bytes="replace")
    return "".join(f"{index}:{line.upper()}\n" for index, line in enumerate(lines))


@pytest.mark.parametrize("shard_lines", [1, 2, 3, 4, 9, 10, 100])
@pytest.mark.parametrize("is_packed", [False, True])
def test_outputs_are_those_of_the_whole_in_order(
    sources: list[Path], shard_lines: int, is_packed: bool, tmp_path: Path
):
    if is_packed:
        sources[0].write_bytes(gzip.compress(TEXT, mtime=0))
    jobs = plan_jobs(sources, tmp_path / "out", ABOUT, shard_lines)
    assert [len(job.shards) for job in jobs] == [-(-9 // shard_lines), -(-2 // shard_lines)]
    assert sum(shard.num_lines for shard in jobs[0].shards) == 9
    finished = list(run_jobs(jobs, run_all))
    assert sorted(job.output.name for job in finished) == ["a.txt", "b.txt"]
    for source, job in zip(sources, jobs, strict=True):
        assert job.output.read_text(encoding="utf-8") == wanted(source)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.txt", "b.txt", MANIFEST]


def test_what_is_done_is_not_done_again(sources: list[Path], tmp_path: Path):
    first = plan_jobs(sources, tmp_path / "out", ABOUT, 2)

    def some(shards: list[Shard]) -> Iterable[Shard]:
        for shard in (shards[0], shards[3], shards[5]):
            shout(shard)
            yield shard
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_jobs(first, some))
    assert (tmp_path / "out" / "b.txt").is_file()
    assert not (tmp_path / "out" / "a.txt").exists()
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "a.txt.parts").iterdir()}
    second = plan_jobs(sources, tmp_path / "out", ABOUT, 2)
    assert [shard.first_line for job in second for shard in job.remaining] == [2, 4, 8]
    assert {path: path.stat().st_mtime_ns for path in times} == times
    assert len(list(run_jobs(second, run_all))) == 2
    assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == wanted(sources[0])

    def nothing(shards: list[Shard]) -> Iterable[Shard]:
        assert shards == []
        return ()

    assert len(list(run_jobs(plan_jobs(sources, tmp_path / "out", ABOUT, 2), nothing))) == 2


def test_a_shard_is_whole_or_not_there(sources: list[Path], tmp_path: Path):
    (job,) = plan_jobs(sources[:1], tmp_path / "out", ABOUT, 2)

    def broken() -> Iterable[str]:
        yield "0:ONE\n"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        job.shards[0].write(broken())
    assert not job.shards[0].is_done
    assert list((tmp_path / "out" / "a.txt.parts").iterdir()) == []


def test_a_stop_between_join_and_clearing_costs_nothing(sources: list[Path], tmp_path: Path):
    (job,) = plan_jobs(sources[:1], tmp_path / "out", ABOUT, 2)
    for shard in job.shards:
        shout(shard)
    (tmp_path / "out" / "a.txt.part").write_text("half", encoding="utf-8")  # of a join that was cut short
    job.finish()
    assert job.output.read_text(encoding="utf-8") == wanted(sources[0])
    (tmp_path / "out" / "a.txt.parts").mkdir()
    job.finish()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.txt", MANIFEST]


def test_a_shard_given_twice_counts_once_and_a_false_one_is_refused(sources: list[Path], tmp_path: Path):
    jobs = plan_jobs(sources, tmp_path / "out", ABOUT, 100)

    def twice(shards: list[Shard]) -> Iterable[Shard]:
        for shard in shards:
            shout(shard)
            yield shard
            yield shard

    assert len(list(run_jobs(jobs, twice))) == 2
    again = plan_jobs(sources, tmp_path / "other", ABOUT, 100)
    with pytest.raises(FileRefused, match="same disk"):
        list(run_jobs(again, lambda shards: shards))


def test_another_model_setting_or_input_does_not_go_on(sources: list[Path], tmp_path: Path):
    out = tmp_path / "out"
    plan_jobs(sources, out, ABOUT, 2)
    with pytest.raises(UsageError, match="begun with another search"):
        plan_jobs(sources, out, {**ABOUT, "search": {"beam": 4}}, 2)
    sources[1].write_bytes(b"x\nz\n")
    with pytest.raises(UsageError, match=r"begun with another b\.txt"):
        plan_jobs(sources, out, ABOUT, 2)
    more = tmp_path / "c.txt"
    more.write_text("new\n", encoding="utf-8")
    assert len(plan_jobs([sources[0], more], out, ABOUT, 2)) == 2  # further files may be added
    assert json.loads((out / MANIFEST).read_text(encoding="utf-8"))["sources"].keys() == {"a.txt", "b.txt", "c.txt"}
    for damage in ("", "[]", "{}", '{"about": 3, "sources": {}}'):
        (out / MANIFEST).write_text(damage, encoding="utf-8")
        with pytest.raises(FileRefused, match=MANIFEST):
            plan_jobs(sources, out, ABOUT, 2)


def test_what_would_be_lost_or_mixed_up_is_refused(sources: list[Path], tmp_path: Path):
    (tmp_path / "more").mkdir()
    twin = tmp_path / "more" / "a.txt"
    twin.write_bytes(b"x\n")
    with pytest.raises(UsageError, match="different names"):
        plan_jobs([sources[0], twin], tmp_path / "out", ABOUT)
    with pytest.raises(UsageError, match="lies in the folder"):
        plan_jobs(sources, tmp_path, ABOUT)
    with pytest.raises(UsageError, match="already holds other files"):
        plan_jobs(sources, tmp_path / "more", ABOUT)
    with pytest.raises(DataError, match="no such file"):
        plan_jobs([tmp_path / "none"], tmp_path / "out", ABOUT)
    part = tmp_path / "a.txt.parts"
    part.write_bytes(b"x\n")
    with pytest.raises(UsageError, match="rename it"):
        plan_jobs([part], tmp_path / "out", ABOUT)
    assert twin.read_bytes() == b"x\n"
    assert not (tmp_path / "out").exists()

"""Bad and very large texts given to `heedful translate`: the time, the outcome, and whether anything was lost.

    python benchmarks/bad_texts.py MODEL [NAME...]

Each case is a document that one command translates. Prints a row of a table for each: its size, the processor seconds
of the command with the loading of the model, the exit code, and what is told.
"""

import io
import json
import random
import resource
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_SECONDS = 300
ADDRESSES = [f"https://example.org/{number}" for number in range(10_000)]
Check = Callable[[str], str]


@dataclass(frozen=True)
class Case:
    """Document of a kind, and what is looked for in its translation."""

    name: str
    ending: str
    content: bytes
    check: Check = lambda output: f"{len(output):,} characters"
    options: Sequence[str] = ()


def words_without_marks(number: int) -> str:
    """Text of some characters, of words in a random order."""
    words = "Hund Mann Frau Kind Ball Park Haus Straße rot klein zwei läuft spielt sitzt neben vor auf einem der ein"
    drawn = random.Random(0).choices(words.split(), k=number)
    return " ".join(drawn)[:number]


def once(spans: Sequence[str]) -> Check:
    """Count the spans that stand once in an output, each as a word."""

    def told(output: str) -> str:
        words = [word.rstrip(".,") for word in output.split()]
        counts = dict.fromkeys(words, 0)
        for word in words:
            counts[word] += 1
        return f"{sum(counts.get(span, 0) == 1 for span in spans):,} of {len(spans):,} stand once"

    return told


def same(content: str) -> Check:
    return lambda output: "the source, unchanged" if output == content else f"changed: {output[:60]!r}"


def office(runs: int) -> bytes:
    """Word file with one paragraph of many runs."""
    import docx

    document = docx.Document()
    paragraph = document.add_paragraph()
    for number in range(runs):
        paragraph.add_run("Hund " if number % 10 else "läuft. ").bold = bool(number % 2)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def bomb() -> bytes:
    """Word file whose text is an entity that grows tenfold nine times."""
    entities = '<!ENTITY a0 "Hund">' + "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    source, target = io.BytesIO(office(1)), io.BytesIO()
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name == "word/document.xml":
                head, _, rest = part.partition(b"?>")
                body = rest.replace(b"l\xc3\xa4uft. ", b"&a9;")
                part = head + b"?><!DOCTYPE x [" + entities.encode() + b"]>" + body
            new.writestr(name, part)
    return target.getvalue()


def cases() -> list[Case]:
    nested = "<b>" * 10_000 + "Ein Hund läuft." + "</b>" * 10_000
    right_to_left = "שלום example.org עולם {name} 42\n"
    return [
        Case("10,000 letters without a mark or space", ".txt", b"a" * 10_000, same("a" * 10_000)),
        Case("1,000,000 letters without a mark or space", ".txt", b"a" * 1_000_000, same("a" * 1_000_000)),
        Case("20,000 characters of words without a mark", ".txt", words_without_marks(20_000).encode()),
        Case("1,000,000 characters of words without a mark", ".txt", words_without_marks(1_000_000).encode()),
        Case("a line of 10,000 addresses", ".txt", " ".join(ADDRESSES).encode(), once(ADDRESSES)),
        Case(
            "a sentence with 10,000 addresses in it",
            ".txt",
            f"Ein Hund {' '.join(ADDRESSES)} läuft.".encode(),
            once(ADDRESSES),
        ),
        Case(
            "10,000 tags that are never closed",
            ".html",
            ("<b>Hund " * 10_000).encode(),
            lambda output: f"{output.count('<b>'):,} tags",
        ),
        Case(
            "10,000 nested tags",
            ".html",
            nested.encode(),
            lambda output: f"{output.count('<b>'):,} opened, {output.count('</b>'):,} closed",
        ),
        Case("an entity that grows to 10^9 words", ".docx", bomb()),
        Case("a placeholder that is all there is", ".txt", b"{name}\n", same("{name}\n")),
        Case(
            "right to left, with spans left to right",
            ".txt",
            right_to_left.encode(),
            once(["example.org", "{name}", "42"]),
        ),
        Case(
            "NUL between and in words",
            ".txt",
            b"Ein Hund\0 l\0uft.\n",
            lambda output: f"{output.count(chr(0))} NUL left",
        ),
        Case(
            "half a surrogate pair in JSON",
            ".json",
            rb'{"a": "Ein Hund \ud800 schl\u00e4ft."}',
            lambda output: ", ".join(f"{name}: {value!a}" for name, value in json.loads(output).items()),
        ),
        Case(
            "a Word file with 100,000 runs in a paragraph",
            ".docx",
            office(100_000),
        ),
        Case("a subtitle file without a subtitle", ".srt", b"\n", same("\n")),
        Case(
            "a pattern of `--keep` with nested repetitions",
            ".txt",
            b"a" * 5000 + b"!\n",
            options=["--keep", "(a+)+$"],
        ),
    ]


def run(model: Path, case: Case, folder: Path) -> str:
    """Row of a table."""
    source, target = folder / f"in{case.ending}", folder / f"out{case.ending}"
    source.write_bytes(case.content)
    target.unlink(missing_ok=True)
    command = [sys.executable, "-m", "heedful", "translate", str(model), str(source), "-o", str(target), *case.options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"| {case.name} | {len(case.content):,} | > {MOST_SECONDS} | | not finished |"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    told = [line.replace(f"{folder}/", "") for line in done.stderr.splitlines()]
    found = f"{told[-1] if told else 'nothing told'}"
    if target.is_file():
        output = "" if case.ending == ".docx" else target.read_text("utf-8")
        told = [line for line in told if not line.startswith("out")]
        found = "; ".join([case.check(output) if output else f"{target.stat().st_size:,} bytes", *told[-1:]])
    return f"| {case.name} | {len(case.content):,} | {seconds:.1f} | {done.returncode} | {found} |"


def main(model: Path, names: Sequence[str]) -> None:
    print("| document | bytes | seconds | exit | outcome |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases():
            if not names or any(name in case.name for name in names):
                print(run(model, case, Path(folder)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""Speed of `heedful serve` beside that of its engine: sentences a second with many clients, and what one client waits.

    python benchmarks/serving.py MODEL SOURCE [--clients 64] [--sentences 640] [--rounds 3] [--threads 1]

Own speed is that of the model in this process, in batches of as many sentences as there are clients. Server, clients
and the model in this process share the processors, and take turns; each round measures one after the other, and prints
the ratio beside the speeds. The wait added by an idle server is the time of a request for one sentence less the time of
the same sentence in this process, as the median over sentences.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from heedful.cli.options import use_threads
from heedful.predictors.table import load
from heedful.predictors.translator import Translator
from heedful.serving.catalog import language_pair
from heedful.text.lines import read_lines
from heedful.text.sentences import split_sentences
from tests.prove.prove_serve_schema import serving
from tests.prove.serving_attacks import read_answer

MOST_CHARACTERS = 200


def request(text: str, pair: tuple[str, str]) -> bytes:
    """Request for the translation of one sentence."""
    body = json.dumps({"q": text, "source": pair[0], "target": pair[1]}).encode()
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def own_speed(translator: Translator, texts: Sequence[str], batch_size: int) -> float:
    """Sentences a second of the model in this process."""
    started = time.perf_counter()
    for start in range(0, len(texts), batch_size):
        translator.translate(texts[start : start + batch_size])
    return len(texts) / (time.perf_counter() - started)


async def served_speed(port: int, texts: Sequence[str], pair: tuple[str, str], clients: int) -> float:
    """Sentences a second of a server whose clients each send one request after another."""
    waiting = iter(texts)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for text in waiting:
            writer.write(request(text, pair))
            status, _, body = await read_answer(reader)
            if status != 200:
                raise RuntimeError(f"status {status}: {body.decode()}")
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return len(texts) / (time.perf_counter() - started)


async def idle_waits(port: int, texts: Sequence[str], pair: tuple[str, str], own: Translator) -> list[float]:
    """Seconds that the server adds to each sentence."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    waits: list[float] = []
    for text in texts:
        started = time.perf_counter()
        writer.write(request(text, pair))
        await read_answer(reader)
        between = time.perf_counter()
        own.translate([text])
        waits.append(between - started - (time.perf_counter() - between))
    writer.close()
    return waits


async def measure(options: argparse.Namespace) -> None:
    """Measure in turns, and print a line per round."""
    translator = load(options.model, kind=Translator)
    pair = language_pair(translator)
    lines = [line for line in read_lines(options.source) if line.strip() and len(line) <= MOST_CHARACTERS]
    texts = [line for line in lines if len(split_sentences(line)) == 1]
    random.Random(1).shuffle(texts)
    texts = texts[: options.sentences]
    async with serving(options.model, options.threads) as port:
        translator.translate(texts[: options.clients])
        await served_speed(port, texts[: options.clients], pair, options.clients)
        ratios: list[float] = []
        for _ in range(options.rounds):
            own = own_speed(translator, texts, options.clients)
            served = await served_speed(port, texts, pair, options.clients)
            ratios.append(served / own)
            print(
                f"own {own:.1f}/s, served {served:.1f}/s to {options.clients} clients: ratio {ratios[-1]:.2f}",
                flush=True,
            )
        waits = await idle_waits(port, texts[:100], pair, translator)
    print(f"ratio, median of {options.rounds} rounds: {statistics.median(ratios):.2f} ({len(texts)} sentences)")
    print(f"added by an idle server to one sentence, median of {len(waits)}: {1000 * statistics.median(waits):.1f} ms")


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=640)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    use_threads(options.threads)
    asyncio.run(measure(options))


if __name__ == "__main__":
    main()

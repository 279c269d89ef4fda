"""Proof of the server under load, overload, slow clients, signals and disconnects.

Run it with `make prove-serve`, or one proof with `python -m tests.prove.prove_serve --only NAME` and its length.
"""

import argparse
import asyncio
import sys
import time
from collections import Counter

from tests.prove import serving_attacks as attacks


async def prove_load(requests: int, clients: int = 200) -> bool:
    """Every answer of many clients is the right one."""
    async with attacks.running() as server:
        started = time.monotonic()
        tally = await attacks.load(server.port, clients, 10**6, requests)
        rate = sum(tally.outcomes.values()) / (time.monotonic() - started)
    print(f"load: {clients} clients: {tally.summary()}; {rate:.0f} requests/s")
    return set(tally.outcomes) == {"right"} and tally.outcomes["right"] >= requests


async def prove_overload(seconds: float) -> bool:
    """Five times the load that the server can bear: it goes on at its speed, and refuses the rest."""
    async with attacks.running(sentence_seconds=0.01, answer_seconds=4) as server:
        peak = await attacks.load(server.port, 64, max(2.0, seconds / 6))
        peak_rate = peak.outcomes["right"] / max(2.0, seconds / 6)
        tally = await attacks.flood(server.port, 5 * peak_rate, seconds)
    goodput = tally.outcomes["right"] / seconds
    share = goodput / peak_rate
    print(f"overload: peak {peak_rate:.0f}/s, offered {5 * peak_rate:.0f}/s, goodput {100 * share:.0f} % of peak")
    print(f"          {tally.summary()}")
    return share >= 0.9 and not {*(+tally.outcomes)} - {"right", "refused"}


async def prove_slow_sockets(sockets: int, seconds: float) -> bool:
    """Sockets that send a byte now and then are closed, and do not slow the others."""
    async with attacks.running(receive_seconds=4) as server:
        before = await attacks.load(server.port, 8, seconds)
        slow = [asyncio.ensure_future(attacks.trickle(server.port, 60)) for _ in range(sockets)]
        beside = await attacks.load(server.port, 8, max(seconds, 6))
        ends = await asyncio.gather(*slow)
    ratio = beside.percentile(0.99) / before.percentile(0.99)
    print(f"slow sockets: {sockets}, closed after {min(ends):.1f} to {max(ends):.1f} s; p99 of others x {ratio:.2f}")
    print(f"          alone {before.summary()}\n          beside {beside.summary()}")
    return max(ends) < 6 and ratio < 2 and set(beside.outcomes) == {"right"}


async def prove_signals(runs: int, in_flight: int = 100) -> bool:
    """SIGTERM with requests in flight: each is answered or refused with Retry-After."""
    total: Counter[str] = Counter()
    for _ in range(runs):
        total += await attacks.terminate_in_flight(in_flight)
    print(f"signals: {runs} runs of {in_flight} in flight: {dict(sorted(total.items()))}")
    return set(total) <= {"right", "refused", "exit 0"} and total["exit 0"] == runs


async def prove_disconnects(number: int) -> bool:
    """Clients that leave free their places."""
    async with attacks.running(sentence_seconds=0.2) as server:
        await asyncio.gather(*(attacks.vanish(server.port) for _ in range(number)))
        started = time.monotonic()
        while await server.metric("heedful_waiting_requests") > 0 and time.monotonic() - started < 30:
            await asyncio.sleep(0.02)
        seconds = time.monotonic() - started
        cancelled = await server.metric("heedful_cancelled_total")
    print(f"disconnects: {number}, cancelled {cancelled:.0f}, places free again after {seconds:.2f} s")
    return seconds <= 1


async def prove_memory(minutes: float) -> bool:
    """Resident memory after warm-up stays where it is."""
    async with attacks.running() as server:
        await attacks.load(server.port, 64, minutes * 20)
        before = server.memory()
        tally = await attacks.load(server.port, 64, minutes * 40)
        growth = (server.memory() - before) / 1e6
    print(f"memory: {minutes:g} minutes, grew by {growth:.1f} MB in the last two thirds; {tally.summary()}")
    return growth <= 5


def main() -> int:
    """Run all proofs, or one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--sockets", type=int, default=500)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=30)
    options = parser.parse_args()
    proofs = {
        "load": lambda: prove_load(options.requests),
        "overload": lambda: prove_overload(options.seconds),
        "slow": lambda: prove_slow_sockets(options.sockets, 5),
        "signals": lambda: prove_signals(options.runs),
        "disconnects": lambda: prove_disconnects(options.sockets),
        "memory": lambda: prove_memory(options.minutes),
    }
    results = {name: asyncio.run(proof()) for name, proof in proofs.items() if options.only in ("", name)}
    for name, is_kept in results.items():
        print(f"{name}: {'kept' if is_kept else 'NOT KEPT'}")
    return 0 if all(results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Every score, normalizer and window in every model: 50 steps of training each, or a refusal (`make prove-mechanisms`).

    python -m tests.prove.prove_mechanisms [WORD...]

With words, only the combinations whose name holds one of them. Exit code 1 if any fails.
"""

import sys
import time
from collections import Counter

import torch

from tests.prove.mechanisms import Combination, combinations, complaint, find_attention


def prove(combination: Combination) -> str:
    """Train one combination.

    Returns:
        "refused", "trains", or what is wrong.
    """
    if combination.refusal():
        return "refused"
    model = combination.build()
    return complaint(model, combination.score, find_attention(model, combination)) or "trains"


def main(words: list[str]) -> int:
    """Train them all, and print what failed and how many of each there are."""
    torch.set_num_threads(1)
    started = time.monotonic()
    verdicts: Counter[str] = Counter()
    failures: list[str] = []
    for combination in combinations():
        if words and not any(word in str(combination) for word in words):
            continue
        verdict = prove(combination)
        known = verdict if verdict in {"refused", "trains"} else "fails"
        verdicts[f"{combination.model}: {known}"] += 1
        if known == "fails":
            failures.append(f"{combination}: {verdict}")
            print(failures[-1], flush=True)
    for name, number in sorted(verdicts.items()):
        print(f"{name:40} {number:5,}")
    print(f"{sum(verdicts.values()):,} combinations, {len(failures)} failures, {time.monotonic() - started:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

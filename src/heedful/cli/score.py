"""Print the log probability of each target given its source.

Targets are scored by forced decoding. DATA is one file of pairs, or two aligned files. Log probabilities are natural
logarithms; EOS counts as a token, unless
the target was cut.

Examples:
  heedful score pairs.model pairs.tsv -o scores.tsv
  heedful score pairs.model test.de test.en --total

Output, UTF-8, one line per pair:
  text       log probability TAB log probability per token TAB tokens
  jsonl      an object: all of this, token by token
  --total    one line for all pairs together, with the perplexity
"""

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heedful.cli.lines import LineFormat, OutputFormat, opened_output
from heedful.cli.messages import Messages, RepeatedWarning
from heedful.cli.options import (
    FILES,
    ColumnsText,
    DataPaths,
    Debug,
    Device,
    ModelPath,
    OutputPath,
    Quiet,
    ReadTokens,
    Threads,
    parse_columns,
    use_threads,
)
from heedful.text.counts import counted

if TYPE_CHECKING:
    from heedful.engines.scored_pairs import ScoredPair


def run(
    model: ModelPath,
    data: DataPaths,
    target: OutputPath = None,
    output_format: LineFormat = "text",
    total: Annotated[
        bool, typer.Option("--total", help="Print only the sums over all pairs.", rich_help_panel=FILES)
    ] = False,
    columns: ColumnsText = "",
    batch_tokens: ReadTokens = 4096,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score pairs."""
    use_threads(threads)
    messages = Messages(quiet)
    from heedful.cli.scoring import load_to_run
    from heedful.engines.scored_pairs import num_scored_characters
    from heedful.predictors.source_columns import model_pairs
    from heedful.predictors.translator import Translator

    translator = load_to_run(model, "auto", device, kind=Translator)
    pairs = model_pairs(translator.folder, data, parse_columns(columns))
    messages.say(pairs.describe())
    cut = RepeatedWarning(messages, "pairs were cut")
    sums = _Sums()
    scored_pairs = translator.scored_pairs(((pair.source, pair.target) for pair in pairs), batch_tokens=batch_tokens)
    with opened_output(target, data) as output:
        for scored, pair in zip(scored_pairs, pairs, strict=True):
            if scored.was_cut:
                cut.add(f"{data[0]}:{pair.line}: cut after {translator.text.max_tokens} tokens")
            sums.add(scored, num_scored_characters(translator.target_tokenizer, scored.target, translator.text))
            if not total:
                output.write(_written(scored, pair.line, output_format))
        if total:
            output.write((json.dumps(sums.facts()) if output_format == "jsonl" else str(sums)) + "\n")
    cut.close()
    if not total:
        messages.say(str(sums))


def _written(scored: "ScoredPair", line: int, output_format: OutputFormat) -> str:
    if output_format == "text":
        return f"{scored.log_prob:.6f}\t{scored.per_token:.6f}\t{len(scored.token_log_probs)}\n"
    facts = {
        "line": line,
        "source": scored.source,
        "target": scored.target,
        "log_prob": scored.log_prob,
        "per_token": scored.per_token,
        "perplexity": scored.perplexity,
        "target_pieces": list(scored.target_pieces),
        "token_log_probs": list(scored.token_log_probs),
        "was_cut": scored.was_cut,
    }
    return json.dumps(facts, ensure_ascii=False) + "\n"


@dataclass
class _Sums:
    """Sums over all pairs."""

    num_pairs: int = 0
    num_tokens: int = 0
    num_characters: int = 0
    log_prob: float = 0.0

    def add(self, scored: "ScoredPair", num_characters: int) -> None:
        self.num_pairs += 1
        self.num_tokens += len(scored.token_log_probs)
        self.num_characters += num_characters
        self.log_prob += scored.log_prob

    def facts(self) -> dict[str, Any]:
        per_token = self.log_prob / max(1, self.num_tokens)
        return {
            "num_pairs": self.num_pairs,
            "num_tokens": self.num_tokens,
            "log_prob": self.log_prob,
            "per_token": per_token,
            "perplexity": math.exp(min(-per_token, 700.0)),
            "bits_per_character": -self.log_prob / math.log(2.0) / max(1, self.num_characters),
        }

    def __str__(self) -> str:
        facts = self.facts()
        return (
            f"{counted(self.num_pairs, 'pair')}, {counted(self.num_tokens, 'target token')}: "
            f"log probability {self.log_prob:.4f}, "
            f"{facts['per_token']:.4f} a token, perplexity {facts['perplexity']:.3f}, "
            f"{facts['bits_per_character']:.3f} bits a character"
        )

"""Print the word alignments of given pairs.

Each target is scored by forced decoding, and the attention of each word gives its link to the source. DATA is one
file of pairs, or two aligned files. Words are separated by spaces; for text without spaces, such as Chinese, use
--tokens.

Examples:
  heedful align pairs.model pairs.tsv -o pairs.links
  heedful align pairs.model test.de test.en --gold test.links

Output, UTF-8, one line per pair:
  text     links such as 0-0 1-2: source word - target word, counted from 0
  jsonl    an object: links, tokens and log probability

With --gold FILE (manual links), alignment error rate (AER), precision and recall are printed instead, and links go to
--output only. FILE has one line of links per pair, 0-0 for sure and 0p0 or 0?0 for possible links, optionally after the
0-based number of the pair and a tab; or one link per line, as in the shared task of NAACL 2003 and the data of RWTH
Aachen.
"""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TextIO, final

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
from heedful.errors import UsageError

if TYPE_CHECKING:
    from heedful.engines.scored_pairs import ScoredPair
    from heedful.text.links import GoldLinks, Links

_GOLD: Final = "Against manual links"
Tokens = Annotated[
    bool, typer.Option("--tokens", help="Align the model's tokens instead of words.", rich_help_panel=FILES)
]
GoldPath = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Manual links to compare with.", rich_help_panel=_GOLD)
]
OneBased = Annotated[bool, typer.Option("--one-based", help="FILE counts words from 1.", rich_help_panel=_GOLD)]
Turned = Annotated[bool, typer.Option("--turned", help="FILE gives links as target-source.", rich_help_panel=_GOLD)]


def run(
    model: ModelPath,
    data: DataPaths,
    target: OutputPath = None,
    output_format: LineFormat = "text",
    tokens: Tokens = False,
    columns: ColumnsText = "",
    gold: GoldPath = None,
    one_based: OneBased = False,
    turned: Turned = False,
    batch_tokens: ReadTokens = 4096,
    device: Device = "auto",
    threads: Threads = 0,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Align words.

    Raises:
        UsageError: the options conflict.
    """
    use_threads(threads)
    messages = Messages(quiet)
    if (one_based or turned) and gold is None:
        raise UsageError("align: --one-based and --turned say how to read manual links; give their file by --gold")
    if tokens and gold:
        raise UsageError("align: --gold has links between words; leave out --tokens")
    from heedful.cli.scoring import load_to_run
    from heedful.evaluation.alignment_error import gold_links
    from heedful.predictors.source_columns import model_pairs
    from heedful.predictors.translator import Translator

    translator = load_to_run(model, "auto", device, kind=Translator)
    pairs = model_pairs(translator.folder, data, parse_columns(columns))
    messages.say(pairs.describe())
    texts = ((pair.source, pair.target) for pair in pairs)
    by_hand = _Gold(gold_links(gold, texts, one_based, turned)) if gold else None
    cut = RepeatedWarning(messages, "pairs were cut")
    scored_pairs = translator.scored_pairs(((pair.source, pair.target) for pair in pairs), True, batch_tokens)
    with nullcontext(None) if by_hand and target is None else opened_output(target, (*data, gold)) as output:
        for index, (scored, pair) in enumerate(zip(scored_pairs, pairs, strict=True)):
            if scored.was_cut:
                cut.add(f"{data[0]}:{pair.line}: cut after {translator.text.max_tokens} tokens")
            links = scored.token_alignment() if tokens else list(scored.alignment or ())
            if output is not None:
                _write(output, scored, links, pair.line, output_format)
            if by_hand:
                by_hand.add(index, links)
    cut.close()
    if by_hand:
        print(by_hand.report(output_format))


def _write(output: TextIO, scored: "ScoredPair", links: "Links", line: int, output_format: OutputFormat) -> None:
    from heedful.text.links import format_pharaoh

    if output_format == "text":
        output.write(format_pharaoh(links) + "\n")
        return
    facts = {
        "line": line,
        "source": scored.source,
        "target": scored.target,
        "alignment": [list(link) for link in links],
        "source_pieces": list(scored.source_pieces),
        "target_pieces": list(scored.target_pieces),
        "log_prob": scored.log_prob,
        "was_cut": scored.was_cut,
    }
    output.write(json.dumps(facts, ensure_ascii=False) + "\n")


@final
class _Gold:
    """Manual links, and predicted ones for the same pairs."""

    def __init__(self, gold: "dict[int, GoldLinks]") -> None:
        self._gold: Final = gold
        self._found: Final[dict[int, Links]] = {}

    def add(self, sentence: int, links: "Links") -> None:
        if sentence in self._gold:
            self._found[sentence] = links

    def report(self, output_format: OutputFormat) -> str:
        from heedful.evaluation.alignment_error import score_alignments

        scores = score_alignments([self._found[sentence] for sentence in self._gold], [*self._gold.values()])
        return json.dumps(scores.to_dict()) if output_format == "jsonl" else str(scores)

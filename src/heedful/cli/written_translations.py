"""Written forms of translations: text, alignments, the n-best format of Moses, and JSON."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from heedful.cli.lines import OutputFormat
from heedful.text.segments import Segment

if TYPE_CHECKING:
    from heedful.predictors.translation import SegmentOutput, Translation

_BREAKS: Final = str.maketrans({"\n": " ", "\r": " "})
_BREAKS_AND_TABS: Final = str.maketrans({"\n": " ", "\r": " ", "\t": " "})


def written_line(
    output: "Translation", index: int, output_format: OutputFormat, align: bool, nbest: int, withheld: str | None
) -> str:
    """Write a translation.

    Args:
        output_format: text or jsonl.
        align: whether to write word links.
        nbest: number of alternatives.
        withheld: text that is left out, for jsonl; None = nothing is.

    Returns:
        One line, or one for each alternative, line ends included; text alone has the lines of its source.
    """
    if output_format == "jsonl":
        facts = _facts(output, index, align) | ({} if withheld is None else {"withheld": withheld})
        return json.dumps(facts, ensure_ascii=False) + "\n"
    if nbest > 1:
        return "".join(
            f"{index} ||| {other.text.translate(_BREAKS)} ||| log_prob= {other.log_prob:.6f} ||| {other.score:.6f}\n"
            for other in output.alternatives
        )
    if align:
        return f"{output.text.translate(_BREAKS_AND_TABS)}\t{output.pharaoh()}\n"
    return (output.text if "\n" in output.source else output.text.translate(_BREAKS)) + "\n"


def _facts(output: "Translation", index: int, align: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "line": index + 1,
        "source": output.source,
        "text": output.text,
        "log_prob": output.log_prob,
        "score": output.score,
        "was_cut": output.was_cut,
        "alternatives": [vars(other) for other in output.alternatives],
    }
    if output.unknown:
        facts["unknown"] = list(output.unknown)
    if output.unreplaced:
        facts["unreplaced"] = output.unreplaced
    if output.confidence is not None:
        facts["confidence"] = round(output.confidence, 6)
    if output.memory:
        facts["memory"] = asdict(output.memory)
    if output.unbiased:
        facts["unbiased"] = output.unbiased
    if align:
        facts["source_pieces"] = list(output.source_pieces)
        facts["target_pieces"] = list(output.target_pieces)
        facts["alignment"] = [list(link) for link in output.alignment or ()]
    if output.fault:
        facts["degenerate"] = output.fault
    if output.lost:
        facts["lost"] = list(output.lost)
    facts["segments"] = [_segment_facts(each, align) for each in _segments(output)]
    return facts


def _segments(output: "Translation") -> Iterator["SegmentOutput"]:
    """Segments of a line with their outputs; a line that was translated as a whole is one, a blank line has none."""
    from heedful.predictors.translation import SegmentOutput  # what it imports takes time

    if output.segments or not output.source.strip():
        yield from output.segments
    else:
        yield SegmentOutput(Segment(output.source, 0, len(output.source)), 0, output)


def _segment_facts(one: "SegmentOutput", align: bool) -> dict[str, Any]:
    """Segment of a line with its output; the places count characters of the source and of the text.

    Pieces of a line of several segments stand here alone.
    """
    segment, output = one.segment, one.output
    facts: dict[str, Any] = {
        "source": segment.source,
        "text": output.text,
        "source_range": [segment.start, segment.end],
        "text_range": [one.start, one.end],
        "log_prob": output.log_prob,
        "score": output.score,
    }
    if output.confidence is not None:
        facts["confidence"] = round(output.confidence, 6)
    if align:
        facts |= {"source_pieces": list(output.source_pieces), "target_pieces": list(output.target_pieces)}
    if output.lost:
        facts["lost"] = list(output.lost)
    return facts | ({"degenerate": output.fault} if output.fault else {})

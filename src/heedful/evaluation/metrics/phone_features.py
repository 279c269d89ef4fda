"""Phone error rate weighted by features, computed with the feature table of the package panphon."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, final

import numpy as np

from heedful.errors import needed_for
from heedful.evaluation.interface import Matrix, References, reference_count

ARPABET: Final[Mapping[str, str]] = {
    phone: ipa
    for phone, _, ipa in (
        pair.partition(":")
        for pair in (
            "AA:ɑ AE:æ AH:ʌ AO:ɔ AW:aʊ AX:ə AY:aɪ B:b CH:t͡ʃ D:d DH:ð EH:ɛ ER:ɹ̩ EY:eɪ F:f G:ɡ HH:h IH:ɪ IY:i JH:d͡ʒ K:k "
            "L:l M:m N:n NG:ŋ OW:oʊ OY:ɔɪ P:p R:ɹ S:s SH:ʃ T:t TH:θ UH:ʊ UW:u V:v W:w Y:j Z:z ZH:ʒ"
        ).split()
    )
}
"""Phones of CMUdict in the IPA, without stress."""


@final
@dataclass(frozen=True)
class PhoneFeatureErrorRate:
    """Edits per reference phone, where a phone in the place of another costs the share of features that differ.

    A phone that is missing or too many costs 1, `p` for `b` 1/24: errors that a listener hardly hears count little.
    Phones stand between spaces, or are divided as panphon divides the IPA; those of CMUdict are read too, without
    stress. A phone whose features are not known costs 1 in the place of another. Mortensen et al. 2016, C16-1328
    (features); rate = 100 sum_i d(h_i, r_i) / sum_i |r_i|, r_i the reference with the fewest edits, the shortest among
    equals. Statistics: edits, reference length.
    """

    name = "phone feature error rate"
    unit = "%"
    higher_is_better = False
    _costs: dict[tuple[str, str], float] = field(default_factory=dict, repr=False, compare=False)

    def statistics(self, hypotheses: Sequence[str], references: References) -> Matrix:
        """Sum the costs of edits; see `Metric.statistics`."""
        rows: list[tuple[float, int]] = []
        for hypothesis, texts in zip(hypotheses, references, strict=True):
            said, wanted = self._phones(hypothesis), [self._phones(text) for text in texts]
            rows.append(min((self._distance(said, phones), len(phones)) for phones in wanted))
        return np.array(rows, dtype=np.float64)

    def scores(self, totals: Matrix) -> Matrix:
        """Return the rate in per cent, 0 or more; see `Metric.scores`."""
        cost, length = totals[..., 0], totals[..., 1]
        return 100 * np.where(length > 0, cost / np.maximum(length, 1), np.minimum(cost, 1))

    def signature(self, references: References) -> str:
        """Return the definition in sacreBLEU's style; see `Metric.signature`."""
        from importlib.metadata import version

        return f"nrefs:{reference_count(references)}|ref:closest|panphon:{version('panphon')}"

    def _phones(self, text: str) -> Sequence[str]:
        phones = text.split()
        if len(phones) == 1 and phones[0].rstrip("012") not in ARPABET:
            return _features().fm.ipa_segs(phones[0]) or phones
        return [ARPABET.get(phone.rstrip("012"), phone) for phone in phones]

    def _distance(self, said: Sequence[str], wanted: Sequence[str]) -> float:
        """Smallest cost of edits, by the table of Wagner and Fischer (1974), a row at a time."""
        row = [float(number) for number in range(len(wanted) + 1)]
        for phone in said:
            above, row = row, [row[0] + 1]
            for number, other in enumerate(wanted):
                row.append(min(row[-1] + 1, above[number + 1] + 1, above[number] + self._cost(phone, other)))
        return row[-1]

    def _cost(self, phone: str, other: str) -> float:
        """Cost of a phone in the place of another, in [0, 1]."""
        if phone == other:
            return 0.0
        pair = min(phone, other), max(phone, other)
        if pair not in self._costs:
            table = _features().fm
            are_known = all("".join(table.ipa_segs(one)) == one for one in pair)
            distance = float(_features().hamming_feature_edit_distance(*pair)) if are_known else 1.0
            self._costs[pair] = min(1.0, distance)
        return self._costs[pair]


@cache
def _features() -> Any:
    """Features of phones, whose table takes half a second to read."""
    with needed_for("features of phones"):
        from panphon.distance import Distance
    return Distance()

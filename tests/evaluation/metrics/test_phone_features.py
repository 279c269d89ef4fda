"""Phone error rate weighted by features."""

import itertools

import pytest

from heedful.evaluation.interface import corpus_score
from heedful.evaluation.metrics.error_rate import TokenErrorRate
from heedful.evaluation.metrics.phone_features import ARPABET, PhoneFeatureErrorRate

distance = pytest.importorskip("panphon.distance")


def rate(output: str, *references: str) -> float:
    metric = PhoneFeatureErrorRate()
    return corpus_score(metric, metric.statistics([output], [references]))


@pytest.mark.parametrize(
    ("output", "reference", "cost"),
    [
        ("p a t", "b a t", 1 / 24),  # voice
        ("pat", "bat", 1 / 24),
        ("P AE1 T", "B AE0 T", 1 / 24),
        ("P AE1 T", "b æ t", 1 / 24),
        ("p a", "p a t", 1),
        ("p a t a", "p a t", 1),
        ("p a t 5", "p a t", 1),
        ("5 a t", "6 a t", 1),  # nothing is known of them
        ("HH AY1", "HH AY2", 0),
    ],
)
def test_costs_are_shares_of_features(output: str, reference: str, cost: float):
    length = len(reference.split()) if " " in reference else 3
    assert rate(output, reference) == pytest.approx(100 * cost / length)


def test_it_is_the_distance_of_panphon_for_phones_of_one_segment():
    exact = distance.Distance()
    phones = ["p", "b", "t", "a", "i", "ʃ"]
    for output, reference in itertools.product(
        [phones[:3], phones[3:], phones[1:5:2], phones[::-1]], [phones[:4], phones[2:]]
    ):
        wanted = exact.hamming_feature_edit_distance("".join(output), "".join(reference))
        assert rate(" ".join(output), " ".join(reference)) == pytest.approx(100 * wanted / len(reference))


def test_the_closest_reference_counts_and_no_error_costs_more_than_a_phone():
    assert rate("p a t", "t a p a", "b a t") == pytest.approx(100 / 24 / 3)
    words = ["K AE1 T", "CH AY0 L D", "x 1 ʃ a", "k æ t ʃ", ""]
    for output, reference in itertools.product(words, words):
        plain = TokenErrorRate()
        assert rate(output, reference) <= corpus_score(plain, plain.statistics([output], [[reference]])) + 1e-12


def test_phones_of_cmudict_are_known():
    table = distance.Distance().fm
    assert len(ARPABET) == 40
    assert [phone for phone, ipa in ARPABET.items() if "".join(table.ipa_segs(ipa)) != ipa] == []

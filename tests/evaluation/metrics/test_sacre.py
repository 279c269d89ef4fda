import re
import sys

import numpy as np
import pytest

from heedful.errors import MissingExtra, install_command
from heedful.evaluation.interface import Metric
from heedful.evaluation.metrics.bleu import Bleu
from heedful.evaluation.metrics.chrf import Chrf
from heedful.evaluation.metrics.sacre import load_sacrebleu
from heedful.evaluation.metrics.ter import Ter
from tests.evaluation.corpus import HYPOTHESES, REFERENCES


@pytest.mark.parametrize(("metric", "purpose"), [(Bleu(), "BLEU"), (Chrf(), "chrF"), (Ter(), "TER")])
def test_absent_sacrebleu_gives_the_install_line(metric: Metric, purpose: str, monkeypatch: pytest.MonkeyPatch):
    for module in ("sacrebleu", "sacrebleu.metrics"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingExtra, match=f"^{purpose} needs sacrebleu: {re.escape(install_command('train'))}$"
    ) as error:
        metric.statistics(["a"], [["a"]])
    assert error.value.exit_code == 6


def test_installed_sacrebleu_is_found():
    assert load_sacrebleu("BLEU").BLEU.__name__ == "BLEU"


@pytest.mark.parametrize("metric", [Bleu(), Chrf(), Ter()])
def test_scores_keep_leading_axes(metric: Metric):
    statistics = metric.statistics(HYPOTHESES, REFERENCES)
    batch = np.stack([statistics[:4], statistics[2:]]).cumsum(axis=1)
    scores = metric.scores(batch)
    assert scores.shape == (2, 4)
    assert scores[1, 3] == metric.scores(statistics[2:].sum(axis=0))


@pytest.mark.parametrize("metric", [Bleu(), Chrf(), Ter()])
def test_a_metric_keeps_nothing_of_what_it_scored(metric: Metric):
    metric.statistics(HYPOTHESES, REFERENCES)
    assert metric.signature([["a"], ["b"]]).startswith("nrefs:1|")
    assert metric.signature([["a", "b"], ["b", "c"]]).startswith("nrefs:2|")
    assert metric.signature([["a", "b"], ["b"]]).startswith("nrefs:var|")

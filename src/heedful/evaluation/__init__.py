"""Evaluation of outputs: metrics from summable statistics, their confidence intervals, and a report.

`evaluate.py` is the entry; `metrics/` holds one metric a file, `bootstrap.py` and `by_length.py` need nothing of a
metric but its statistics, `report.py` prints. Nothing here imports torch.
"""

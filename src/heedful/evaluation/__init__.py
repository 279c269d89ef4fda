"""Evaluation of outputs: metrics from summable statistics, their confidence intervals, and a report.

`evaluate.py` is the entry point; `metrics/` has one file per metric; `bootstrap.py` and `by_length.py` use only the
interface of metrics; `report.py` formats the results. Nothing here imports torch.
"""

"""Predictors: trained models opened for use; PyTorch is loaded only when it computes."""

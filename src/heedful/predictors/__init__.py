"""Predictors: what a user holds of a trained model, without PyTorch until it computes."""

"""Training runs: from a request to a trained model, its scores and its exports."""

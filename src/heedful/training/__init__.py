"""Training loop and its parts: loss, schedule, optimizer, checkpoints, distribution."""

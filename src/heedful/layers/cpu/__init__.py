"""Fast training on CPUs: packed attention, normalisation and residual sums in one pass, in mixed precision."""

"""Weights: scores, steps, and the links between the two. One file a form, one interface (`base.Weights`)."""

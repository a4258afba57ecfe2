"""Losses and gains, values only: what a decision costs once the truth is known."""

"""Prediction problems: what decisions and truths look like, what they cost, and how they are searched."""

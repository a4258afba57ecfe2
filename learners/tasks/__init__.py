"""Prediction problems: what decisions cost, and how they are searched. Each file registers its losses."""

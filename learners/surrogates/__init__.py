"""Directions in score space, one file an algorithm: the only thing in which the algorithms differ."""

"""Algorithms, one file or folder each. Each registers itself (see `registry.py`), and is imported because it is here."""

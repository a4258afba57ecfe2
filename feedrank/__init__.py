"""feedrank: ranking and labelling that learns from every piece of feedback, at once, durably.

Three packages live here, each useful by itself:

- ``feedrank.learners``: all algorithms, pure NumPy and SciPy, no I/O;
- ``feedrank.service``: the HTTP service with its durable stores (``pip install feedrank[service]``);
- ``feedrank.clients``: the HTTP client and what stands on it (``pip install feedrank[clients]``).
"""

__version__ = "0.1.0"

__all__ = ["__version__"]

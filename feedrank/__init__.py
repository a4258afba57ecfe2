"""feedrank: ranking and labelling that learns from every piece of feedback, at once, durably.

Three packages live here, each useful by itself:

- ``feedrank.learners``: all algorithms, pure NumPy and SciPy, no I/O;
- ``feedrank.service``: the HTTP service with its durable stores (``pip install feedrank[service]``);
- ``feedrank.clients``: the HTTP client and what stands on it (``pip install feedrank[clients]``).
"""

import os as _os

__version__ = "0.3.0"

__all__ = ["__version__"]

_HERE = _os.path.dirname(_os.path.abspath(__file__))
_ROOT = _os.path.dirname(_HERE)
if not _os.path.isdir(_os.path.join(_HERE, "learners")) and _os.path.isdir(_os.path.join(_ROOT, "learners")):
    # A checkout whose links to the three folders became text files, as in a zip download or on Windows.
    __path__.append(_ROOT)

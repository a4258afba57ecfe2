"""Types for JSON objects in Python, by how much of their content is known.

Body   what a caller sent: a field has to be checked before it is used, and the type checker sees to it
JSON   what this code made or has checked; `View` is one that is only read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Body = Mapping[str, object]
JSON = dict[str, Any]
View = Mapping[str, Any]

"""JSON objects as Python has them: `JSON` is made here, `Payload` is one that is only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON = dict[str, Any]
Payload = Mapping[str, Any]

"""Types for JSON objects: `JSON` is built here, `Payload` is only read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

JSON = dict[str, Any]
Payload = Mapping[str, Any]

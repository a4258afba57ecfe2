"""Reading instances without holding the loop: a long text is cut into words, and a long list checked, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from feedrank.learners import reading
from feedrank.learners.instances import FeatureVector, ItemList

CHARACTERS, ITEMS = 20_000, 400  # from which a thread costs less than it spares


async def read_instance(spec: Mapping[str, Any], instance: Mapping[str, Any]) -> FeatureVector | ItemList:
    """What `reading.instance` reads."""
    if is_long(instance):
        return await asyncio.to_thread(reading.instance, spec, instance)
    return reading.instance(spec, instance)


def is_long(instance: Mapping[str, Any]) -> bool:
    text, items = instance.get("text"), instance.get("items")
    fields = text.values() if isinstance(text, dict) else (text,)
    if sum(len(field) for field in fields if isinstance(field, str)) > CHARACTERS:
        return True
    rows = items.get("rows") if isinstance(items, dict) else items
    return isinstance(rows, list) and len(rows) > ITEMS

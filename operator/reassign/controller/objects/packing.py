"""Packed objects: what has ended is kept without its partitions, which stay compressed until they are asked for.

A cluster can have thousands of finished resources. Each is looked at only when its turn to be judged for drift comes.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from pydantic_core import from_json

from reassign.core.model.resource import Settled
from reassign.kube.client import Object

LONG = {"metadata": ("managedFields",), "spec": ("partitions", "topics"), "status": ("partitions",)}
"""What a packed object shows only as a whole."""
COPY = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which kubectl keeps a copy of the object."""


class Packed(dict[str, Any]):
    """An object without its long parts; `settled` says the rest about a PartitionReassignment."""

    def __init__(self, obj: Object, settled: Settled | None = None) -> None:
        super().__init__(obj)
        for part, names in LONG.items():
            if part in obj:
                self[part] = {name: value for name, value in obj[part].items() if name not in names}
        if annotations := self["metadata"].get("annotations"):
            self["metadata"]["annotations"] = {name: value for name, value in annotations.items() if name != COPY}
        self.settled = settled
        self._whole = zlib.compress(json.dumps(obj).encode(), level=1)

    def whole(self) -> Object:
        """Return the object with all its parts, as it was read."""
        obj: Object = from_json(zlib.decompress(self._whole))
        return obj


def whole(obj: Object) -> Object:
    """Return an object with all its parts."""
    return obj.whole() if isinstance(obj, Packed) else obj

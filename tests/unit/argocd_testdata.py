"""Makes the test data of the health scripts, in Argo CD's form, from states that the simulators bring about.

`python -m tests.unit.argocd_testdata` writes it; what is expected of each state is judged by who reads the change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from localplatform.argocd_config import CUSTOMIZATIONS
from reassign.api.common import API_VERSION
from tests.unit.argocd import health
from tests.unit.kstatus_table import STATES

KEPT = ("digest", "summary", "observedGeneration", "conditions")


def files() -> Iterator[tuple[Path, str]]:
    """Each file, and what is in it."""
    for kind, states in STATES.items():
        folder, tests, names = CUSTOMIZATIONS / kind, [], Counter[str]()
        for _, obj in states():
            found = _object(kind, obj)
            status, message = health(kind, found)
            ready = (c["reason"] for c in found["status"].get("conditions", ()) if c["type"] == "Ready")
            name = f"{status.lower()}-{next(ready, 'not-seen-yet')}"
            names[name] += 1
            path = f"testdata/{name}{f'-{names[name]}' if names[name] > 1 else ''}.yaml"
            tests.append({"healthStatus": {"status": status, "message": message}, "inputPath": path})
            yield folder / path, yaml.safe_dump(found, sort_keys=False, width=120)
        yield folder / "health_test.yaml", yaml.safe_dump({"tests": tests}, sort_keys=False, width=120)


def _object(kind: str, seen: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "example", "namespace": "kafka"} | seen["metadata"]
    status = {name: seen["status"][name] for name in KEPT if name in seen["status"]}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "status": status}


if __name__ == "__main__":
    for path, text in files():
        path.write_text(text)

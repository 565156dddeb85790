"""Helm, and the chart as it renders."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import yaml

from localplatform.controlplane import binaries
from localplatform.processes import TIMEOUT
from tests.api.kubectl import Object, RefusedError

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "kafka-reassign-operator"
NAME = "kafka-reassign-operator"


class Helm:
    """Runs helm with a home of its own; a failure is an error that quotes what it said."""

    def __init__(self, home: Path, kubeconfig: Path | None = None, cwd: Path | None = None) -> None:
        self._cwd = cwd
        self._environment = os.environ | {
            "HELM_CACHE_HOME": str(home / "cache"),
            "HELM_CONFIG_HOME": str(home / "config"),
            "HELM_DATA_HOME": str(home / "data"),
            "KUBECONFIG": str(kubeconfig or home / "none"),
        }

    def __call__(self, *arguments: str) -> str:
        finished = subprocess.run(
            [str(binaries() / "helm"), *arguments],
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=2 * TIMEOUT,
            check=False,
            cwd=self._cwd,
        )
        if finished.returncode:
            raise RefusedError(f"helm {' '.join(arguments)}: {finished.stderr}{finished.stdout}")
        return finished.stdout

    def template(self, **values: Any) -> list[Object]:
        """What the chart renders to with these values (crds=..., watchNamespaces=...)."""
        text = self("template", NAME, str(CHART), "--namespace=system", *flags(values))
        return [document for document in yaml.safe_load_all(text) if document]


def flags(values: dict[str, Any]) -> list[str]:
    return [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]


def of_kind(documents: list[Object], *kinds: str) -> list[Object]:
    return [document for document in documents if document["kind"] in kinds]


def rights(role: Object) -> set[tuple[str, str, str]]:
    """Group, resource and verb of all that a role allows."""
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }

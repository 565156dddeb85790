"""Makes what Argo CD is configured with, from deploy/argocd/resource_customizations, whose form is Argo CD's own.

Written twice: as a patch of the ConfigMap argocd-cm, and as values of Argo CD's Helm chart.
"""

from pathlib import Path
from typing import Any

import yaml

from localplatform.machine import CHECKOUT

FOLDER = CHECKOUT / "deploy" / "argocd"
GROUP = "kafka.reassign.dev"
CUSTOMIZATIONS = FOLDER / "resource_customizations" / GROUP
CONFIG_MAP = """\
# How Argo CD sees whether our resources are well, and what its users may do with them: docs/fleets/manifests.md.
# Made by `make crds` from resource_customizations.
# kubectl -n argocd patch configmap argocd-cm --patch-file deploy/argocd/argocd-cm.yaml
"""
VALUES = """\
# The same as argocd-cm.yaml, as values of Argo CD's Helm chart. Made by `make crds` from resource_customizations.
# helm upgrade argocd argo/argo-cd --reuse-values --values deploy/argocd/helm-values.yaml
"""


class _Dumper(yaml.SafeDumper):
    """Writes scripts as blocks, line by line."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)


def settings() -> dict[str, str]:
    """The entries of argocd-cm: health and actions of each kind."""
    found = {}
    for kind in sorted(path for path in CUSTOMIZATIONS.iterdir()):
        name = f"{GROUP}_{kind.name}"
        found[f"resource.customizations.health.{name}"] = (kind / "health.lua").read_text()
        found[f"resource.customizations.actions.{name}"] = _dumped(_actions(kind / "actions"))
    return found


def _actions(folder: Path) -> dict[str, Any]:
    scripts = sorted(folder.glob("*/action.lua"))
    definitions = [{"name": path.parent.name, "action.lua": path.read_text()} for path in scripts]
    return {"discovery.lua": (folder / "discovery.lua").read_text(), "definitions": definitions}


def _dumped(value: Any) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=120)


def documents() -> dict[Path, str]:
    """Each file, and what is in it."""
    return {
        FOLDER / "argocd-cm.yaml": CONFIG_MAP + _dumped({"data": settings()}),
        FOLDER / "helm-values.yaml": VALUES + _dumped({"configs": {"cm": settings()}}),
    }


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)

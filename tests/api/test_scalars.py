"""What is written in YAML, and what is read of it, is what kubectl and the API server take it for."""

from __future__ import annotations

import json

import pytest

from reassign.api.names import TOPIC_NAME
from reassign.manifests.text import dump, load
from tests.api.kubectl import Kubectl, RefusedError, entry, reassignment
from tests.unit.scalars import SCALARS, UNHOLDABLE

NAMES = [name for name in SCALARS if TOPIC_NAME.fullmatch(name)]


def test_names_that_look_like_numbers_arrive_as_they_were_written(sandbox: Kubectl) -> None:
    written = dump([reassignment("1e3", partitions=[entry(topic=name) for name in NAMES], clusterRef={"name": "0x1f"})])
    stored = sandbox.json("create", "--dry-run=server", "-f", "-", input=written)
    assert [each["topic"] for each in stored["spec"]["partitions"]] == NAMES
    assert stored["metadata"]["name"] == "1e3"
    assert stored["spec"]["clusterRef"] == {"name": "0x1f"}


def test_scalars_without_quotes_are_read_as_kubectl_reads_them(sandbox: Kubectl) -> None:
    lines = "".join(f"  - {scalar}\n" for scalar in SCALARS)
    text = f"apiVersion: v1\nkind: Any\nmetadata: {{name: any}}\nspec:\n  all:\n{lines}"
    read = sandbox.json("annotate", "--local", "-f", "-", "a=b", input=text)["spec"]["all"]
    assert read == list(SCALARS.values()) == load(text)[0]["spec"]["all"]
    assert json.dumps(read) == json.dumps(load(text)[0]["spec"]["all"])  # 1 is not true


@pytest.mark.parametrize("scalar", UNHOLDABLE)
def test_kubectl_refuses_numbers_that_json_cannot_hold(sandbox: Kubectl, scalar: str) -> None:
    with pytest.raises(RefusedError, match="unsupported value"):
        sandbox.json("annotate", "--local", "-f", "-", "a=b", input=f"apiVersion: v1\nkind: Any\nspec: {scalar}")

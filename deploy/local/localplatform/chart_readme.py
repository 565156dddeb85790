"""Makes the chart's README: what each value means, from values.schema.json, and its default, from values.yaml."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml

from localplatform.machine import CHECKOUT

CHART = CHECKOUT / "charts" / "kafka-reassign-operator"
HEAD = """\
# Chart of the operator

This chart installs the operator, and the definitions of its resources, in one release.

```console
helm install kafka-reassign charts/kafka-reassign-operator --namespace kafka-reassign --create-namespace
```

[Upgrading](../../docs/operations/upgrading.md) and [Uninstall](../../docs/recipes/uninstall.md) describe what follows.

```console
helm test kafka-reassign --namespace kafka-reassign
```

This starts a pod of the operator's own image. It asks the operator's Service, by its DNS name, whether the operator is
ready. Without a Service there is no such test. With `networkPolicy.metricsFrom`, allow pods of the release's namespace
too.

## Values

[Tests of the values](../../docs/built/chart-values.md) shows how each is tested.

"""


class Value(NamedTuple):
    """A value that can be set: its path, what it is by default, and what it means."""

    path: str
    default: Any
    meaning: str


def values() -> Iterator[Value]:
    """All of them, in the schema's order."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    yield from _values(schema["properties"], yaml.safe_load((CHART / "values.yaml").read_text()), "")


def _values(properties: dict[str, Any], defaults: dict[str, Any], prefix: str) -> Iterator[Value]:
    for name, schema in properties.items():
        if inner := schema.get("properties"):
            yield from _values(inner, defaults[name], f"{prefix}{name}.")
        else:
            yield Value(f"{prefix}{name}", defaults.get(name), schema["description"])


def readme() -> str:
    """The whole page."""
    return HEAD + table()


def table() -> str:
    """The values alone."""
    rows = (f"| `{value.path}` | `{json.dumps(value.default)}` | {value.meaning} |\n" for value in values())
    return "| value | default | meaning |\n| --- | --- | --- |\n" + "".join(rows)


if __name__ == "__main__":
    (CHART / "README.md").write_text(readme())

"""The JSON of kafka-reassign-partitions.sh to PartitionReassignments and back, without loss.

The order of the entries stays, and so does whether `log_dirs` is there at all. What the file cannot say (options,
expectedReplicas) comes from the template, and is left out on the way back. Its checks are the stock tool's own
(ReassignPartitionsCommand.parsePartitionReassignmentData), and those of the resource.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reassign.api.common import INT32_MAX
from reassign.api.limits import (
    MAX_LOG_DIR_CHARACTERS,
    MAX_REPLICAS,
    MAX_TOPIC_CHARACTERS,
    MAX_TOPIC_NAME_CHARACTERS,
    MAX_WAVE_PARTITIONS,
)
from reassign.api.partition_reassignment import ANY_LOG_DIR
from reassign.errors import PlanningError, Reason
from reassign.planning.manifests import Manifest, manifest, shortened, spec_of

VERSION = 1
TOPIC = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_TOPIC_NAME_CHARACTERS}}}")
DIRECTORY = re.compile(rf"{ANY_LOG_DIR}|/.{{0,{MAX_LOG_DIR_CHARACTERS - 1}}}")
KEYS = {"topic", "partition", "replicas", "log_dirs"}


def read(
    text: str | bytes,
    *,
    name: str,
    namespace: str,
    cluster_ref: Mapping[str, Any],
    template: Mapping[str, Any],
    max_partitions: int = MAX_WAVE_PARTITIONS,
) -> list[Manifest]:
    """The file's moves as manifests of at most `max_partitions` each, NAME, or NAME-1, NAME-2 … in the file's order.

    `template` are options of a spec; both it and `cluster_ref` are as on the wire. Raises PlanningError for what the
    stock tool, or the resource, does not allow.
    """
    entries = [
        {("logDirs" if key == "log_dirs" else key): value for key, value in entry.items()} for entry in _parsed(text)
    ]
    parts = list(_parts(entries, max_partitions))
    width = len(str(len(parts)))
    names = (
        [shortened(name, f"-{number:0{width}}") for number in range(1, len(parts) + 1)] if len(parts) > 1 else [name]
    )
    return [
        manifest(each, namespace, spec_of({**template, "clusterRef": cluster_ref, "partitions": part}))
        for each, part in zip(names, parts, strict=True)
    ]


def write(manifests: Iterable[Mapping[str, Any]]) -> str:
    """The moves of all these manifests, in their order, as one file; PlanningError where two name the same one."""
    partitions = [
        {
            "topic": entry["topic"],
            "partition": entry["partition"],
            "replicas": list(entry["replicas"]),
            **({"log_dirs": list(entry["logDirs"])} if entry.get("logDirs") is not None else {}),
        }
        for each in manifests
        for entry in each["spec"]["partitions"]
    ]
    _check_all(partitions)
    lines = ",\n".join(json.dumps(partition, separators=(",", ":")) for partition in partitions)
    return f'{{"version":{VERSION},"partitions":[\n{lines}\n]}}\n'


def _parsed(text: str | bytes) -> list[dict[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(f"the file is not JSON ({error})") from error
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise _refusal("the file has no list named partitions")
    if document.get("version") != VERSION or isinstance(document["version"], bool):
        raise _refusal(f"the file's version is {reprlib.repr(document.get('version'))}, not {VERSION}")
    partitions: list[dict[str, Any]] = document["partitions"]
    _check_all(partitions)
    return partitions


def _check_all(partitions: Sequence[Any]) -> None:
    if not partitions:
        raise _refusal("there are no partitions in it")
    seen: set[tuple[str, int]] = set()
    for number, entry in enumerate(partitions):
        if problem := _problem(entry):
            raise _refusal(f"partitions[{number}]: {problem}")
        key = entry["topic"], entry["partition"]
        if key in seen:
            raise _refusal(f"partitions[{number}]: {key[0]}-{key[1]} is there already")
        seen.add(key)


def _problem(entry: Any) -> str | None:
    """What is wrong with one entry of a file, the first thing only."""
    if not isinstance(entry, dict):
        return "it is not an object"
    if missing := sorted({"topic", "partition", "replicas"} - set(entry)):
        return f"it has no {missing[0]}"
    if unknown := sorted(set(entry) - KEYS):
        return f"{unknown[0]!r} is not known"
    topic, partition, replicas, directories = (entry.get(k) for k in ("topic", "partition", "replicas", "log_dirs"))
    if not isinstance(topic, str) or not TOPIC.fullmatch(topic) or topic in (".", ".."):
        return f"no topic can be named {reprlib.repr(topic)}"
    if not _is_id(partition):
        return f"no partition has the number {reprlib.repr(partition)}"
    if not isinstance(replicas, list) or not 1 <= len(replicas) <= MAX_REPLICAS:
        return f"replicas is not a list of 1 to {MAX_REPLICAS} brokers"
    if wrong := [broker for broker in replicas if not _is_id(broker)]:
        return f"no broker has the id {reprlib.repr(wrong[0])}"
    if len(set(replicas)) < len(replicas):
        return f"replicas names a broker more than once: {replicas}"
    if "log_dirs" not in entry:
        return None
    if not isinstance(directories, list) or len(directories) != len(replicas):
        return "log_dirs must have as many items as replicas"
    if wrong := [path for path in directories if not _is_directory(path)]:
        return f"log_dirs has {reprlib.repr(wrong[0])}, which is neither {ANY_LOG_DIR} nor an absolute path"
    return None


def _is_id(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT32_MAX


def _is_directory(path: object) -> bool:
    return isinstance(path, str) and DIRECTORY.fullmatch(path) is not None


def _parts(entries: Sequence[Manifest], max_partitions: int) -> Iterator[list[Manifest]]:
    """Runs of entries that one object can hold."""
    part: list[Manifest] = []
    characters = 0
    for entry in entries:
        characters += len(entry["topic"])
        if len(part) == max_partitions or characters >= MAX_TOPIC_CHARACTERS:
            yield part
            part, characters = [], len(entry["topic"])
        part.append(entry)
    yield part


def _refusal(message: str) -> PlanningError:
    return PlanningError(
        Reason.INVALID_GOAL, f"{message}: give what kafka-reassign-partitions --reassignment-json-file takes"
    )

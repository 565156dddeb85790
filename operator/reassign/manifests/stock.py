"""The JSON of kafka-reassign-partitions.sh as PartitionReassignments, and the reverse, without loss.

The order of the entries stays, and so does the presence of `log_dirs`. Options come from the template; they and
`expectedReplicas` have no place in the file. A file is judged as the stock tool judges it
(ReassignPartitionsCommand.parsePartitionReassignmentData): without a version it is of version 1, and fields that are
unknown, and what follows the document, are not read. After that the bounds of the resource count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

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
from reassign.manifests.objects import Manifest, manifest, shortened, spec_of
from reassign.text import cut, listed

VERSION = 1
TOPIC = re.compile(rf"[a-zA-Z0-9._-]{{1,{MAX_TOPIC_NAME_CHARACTERS}}}")
DIRECTORY = re.compile(rf"{ANY_LOG_DIR}|/[^\n\ud800-\udfff]{{0,{MAX_LOG_DIR_CHARACTERS - 1}}}")
FIELDS = ("version", "partitions")
ENTRY_FIELDS = ("topic", "partition", "replicas", "log_dirs")
CURRENT, PROPOSED = "Current partition replica assignment", "Proposed partition reassignment configuration"
"""Lines that the stock tool prints above the JSON of an assignment."""
SHOWN = 50
TAKEN = "give what kafka-reassign-partitions --reassignment-json-file takes"


class Moves(NamedTuple):
    """What is read of a file of the stock tool."""

    partitions: list[dict[str, Any]]
    """The entries, with the fields that the stock tool reads."""
    notes: tuple[str, ...]
    """What of the file is not read, as sentences."""


def read(text: str) -> Moves:
    """Return the moves of a file. Raises PlanningError for what the stock tool, or the resource, does not take."""
    if printed := _printed(text):
        raise _refusal(printed)
    try:
        document, rest = first(text)
    except ValueError as error:
        raise _refusal(f"it is not JSON: {error}; {TAKEN}") from None
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise _refusal(f"it has no list named partitions; {TAKEN}")
    if not _is_int(version := document.get("version", VERSION)) or version != VERSION:
        raise _refusal(f"its version is {_shown(version)}, not {VERSION}; {TAKEN}")
    partitions = document["partitions"]
    _check_all(partitions)
    known = [{field: entry[field] for field in ENTRY_FIELDS if field in entry} for entry in partitions]
    return Moves(known, tuple(_notes(document, rest)))


def first(text: str) -> tuple[Any, str]:
    """Return the first JSON value of a text, and a note about what follows it, which is empty where nothing does.

    Raises ValueError with what is wrong, and where.
    """
    begin = _after_blanks(text, 0)
    if begin == len(text):
        raise ValueError("it is empty")
    try:
        document, end = _DECODER.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise ValueError("it has NaN, Infinity, or a number that is too long") from None
    rest = _after_blanks(text, end)
    if rest == len(text):
        return document, ""
    line = text.count("\n", 0, rest) + 1
    return document, f"what follows the JSON document, at line {line}, is not read, as the stock tool does not read it"


def _after_blanks(text: str, at: int) -> int:
    return len(text) - len(text[at:].lstrip(" \t\r\n"))


def _no_number(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def manifests(
    partitions: Sequence[Mapping[str, Any]],
    *,
    name: str,
    namespace: str,
    cluster_ref: Mapping[str, Any],
    template: Mapping[str, Any],
    max_partitions: int = MAX_WAVE_PARTITIONS,
) -> list[Manifest]:
    """Return moves as manifests of at most `max_partitions`, named NAME, or NAME-1, NAME-2 … in their order.

    `template` are options of a spec; both it and `cluster_ref` are as on the wire.
    """
    entries = [
        {("logDirs" if key == "log_dirs" else key): value for key, value in entry.items()} for entry in partitions
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
    """Return the moves of these manifests as one file; raises PlanningError where two name the same partition."""
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


def left_out(manifests: Iterable[Mapping[str, Any]]) -> str:
    """Return a note of the fields that `write` has no place for; it is empty where there are none."""
    specs = [each["spec"] for each in manifests]
    fields = dict.fromkeys(field for spec in specs for field in spec if field not in ("clusterRef", "partitions"))
    if any(entry.get("expectedReplicas") is not None for spec in specs for entry in spec["partitions"]):
        fields["expectedReplicas"] = None
    return f"the stock tool's JSON has no place for these fields: {', '.join(fields)}" if fields else ""


def _printed(text: str) -> str | None:
    """Return what to do with a text that the stock tool has printed; None for any other one."""
    lines = text.splitlines()
    below = {
        line.strip(): next((n for n, later in enumerate(lines[at:], at + 1) if later.strip()), None)
        for at, line in enumerate(lines, 1)
        if line.strip() in (CURRENT, PROPOSED)
    }
    if not below:
        return None
    what = {PROPOSED: "is the proposed assignment", CURRENT: "is the assignment before it, to go back to"}
    told = " and ".join(f"line {below[line]} {words}" for line, words in what.items() if below.get(line))
    return f"this is what kafka-reassign-partitions has printed: {told or 'it is cut short'}; give one JSON line alone"


def _notes(document: Mapping[str, Any], rest: str) -> Iterator[str]:
    unread = [repr(field) for field in document if field not in FIELDS]
    for number, entry in enumerate(document["partitions"]):
        unread += [f"partitions[{number}].{field!r}" for field in entry if field not in ENTRY_FIELDS]
    if unread:
        yield f"fields that the stock tool does not know are not read, as it does not read them: {listed(unread)}"
    if rest:
        yield rest


def _check_all(partitions: Sequence[Any]) -> None:
    if not partitions:
        raise _refusal(f"there are no partitions in it; {TAKEN}")
    seen: set[tuple[str, int]] = set()
    for number, entry in enumerate(partitions):
        if problem := _malformed(entry):
            raise _refusal(f"partitions[{number}]: {problem}; {TAKEN}")
        if problem := _out_of_bounds(entry):
            raise _refusal(f"partitions[{number}]: {problem}; correct it, as no PartitionReassignment can have that")
        key = entry["topic"], entry["partition"]
        if key in seen:
            raise _refusal(f"partitions[{number}]: {key[0]}-{key[1]} is there already; name each partition once")
        seen.add(key)


def _malformed(entry: Any) -> str | None:
    """Return what the stock tool refuses in an entry."""
    if not isinstance(entry, dict):
        return f"it is {_shown(entry)}, not an object"
    if missing := sorted({"topic", "partition", "replicas"} - set(entry)):
        return f"it has no {missing[0]}"
    topic, partition, replicas = entry["topic"], entry["partition"], entry["replicas"]
    if not isinstance(topic, str):
        return f"topic is {_shown(topic)}, not a string"
    if not _is_int(partition):
        return f"partition is {_shown(partition)}, not a whole number of 32 bits"
    if not isinstance(replicas, list) or not replicas:
        return f"replicas is {_shown(replicas)}, not a list of brokers"
    if wrong := [broker for broker in replicas if not _is_int(broker)]:
        return f"replicas has {_shown(wrong[0])}, not a whole number of 32 bits"
    if len(set(replicas)) < len(replicas):
        return f"replicas names a broker more than once: {listed(replicas, most=MAX_REPLICAS)}"
    directories = entry.get("log_dirs", [ANY_LOG_DIR] * len(replicas))
    if not isinstance(directories, list) or len(directories) != len(replicas):
        return "log_dirs must have as many items as replicas"
    if wrong := [path for path in directories if not isinstance(path, str)]:
        return f"log_dirs has {_shown(wrong[0])}, not a string"
    return None


def _out_of_bounds(entry: Mapping[str, Any]) -> str | None:
    """Return what the stock tool reads in an entry, and the resource does not take; brokers would refuse most of it."""
    if not TOPIC.fullmatch(entry["topic"]) or entry["topic"] in (".", ".."):
        return f"no topic can be named {_shown(entry['topic'])}"
    if entry["partition"] < 0:
        return f"no partition has the number {entry['partition']}"
    if len(entry["replicas"]) > MAX_REPLICAS:
        return f"replicas has {len(entry['replicas'])} brokers, more than {MAX_REPLICAS}"
    if (least := min(entry["replicas"])) < 0:
        return f"no broker has the id {least}"
    if wrong := [path for path in entry.get("log_dirs", ()) if not DIRECTORY.fullmatch(path)]:
        return f"log_dirs has {_shown(wrong[0])}, which is neither {ANY_LOG_DIR} nor an absolute path"
    return None


def _is_int(value: object) -> bool:
    """Whether it is a whole number of 32 bits, which is not written as 1.0."""
    return isinstance(value, int) and not isinstance(value, bool) and -INT32_MAX <= value <= INT32_MAX


def _shown(value: object) -> str:
    """Return a value in JSON's own words."""
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    return "an object" if isinstance(value, dict) else cut(json.dumps(value, ensure_ascii=False), SHOWN)


def _parts(entries: Sequence[Manifest], max_partitions: int) -> Iterator[list[Manifest]]:
    """Yield runs of entries that one object can hold."""
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
    return PlanningError(Reason.INVALID_GOAL, message)

"""Plans as a tree of manifests for Git: a folder for each cluster, a file for each wave, and what they were made from.

    MANIFESTS/run.json
    MANIFESTS/clusters/main/wave-1.yaml

Argo CD syncs a cluster's folder: its waves are sync waves, so that the health of one gates the next. All files
`clusters/*/wave-*.yaml` are this program's: it writes what has changed, and removes what is no longer planned. The
files of a cluster that is left out of a run stay as they are, since what is removed from Git is cancelled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from reassign.api.names import OBJECT_NAME
from reassign.errors import PlanningError, Reason
from reassign.files.whole import UNFINISHED, check_writable, write, writing
from reassign.manifests.objects import Manifest
from reassign.manifests.text import dump

SYNC_WAVE = "argocd.argoproj.io/sync-wave"
SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
ASKED = "Prune=confirm,Delete=confirm"
"""Argo CD (2.14) asks for confirmation before it removes a wave, which cancels its moves in flight."""
COMMENT = "# Written by kubectl kafka-reassign fleet, which writes it anew or removes it when the plan changes.\n"
KEPT = b"""\
The waves of this cluster's plan are in this folder. When there are none, nothing is planned. The folder stays, so that
Argo CD prunes what was here. Remove it when the cluster is gone.
"""
RUN, CLUSTERS = "run.json", "clusters"
WAVES = "wave-*.yaml"
PLANNED = ("Planned", "Unchanged")
"""States of clusters whose files are exactly those of this run."""


class Emitted(NamedTuple):
    """The changes to the files of a tree."""

    written: int
    unchanged: int
    removed: int
    dropped: tuple[str, ...] = ()
    """Clusters that had files and have no snapshot any more."""


def check_tree(folder: Path) -> None:
    """Raise PlanningError for a folder that can hold no tree of manifests; write nothing."""
    for place in (folder, folder / CLUSTERS):
        check_writable(place, "manifests")
    if (folder / RUN).is_dir():
        why = f"{folder / RUN} is a folder: remove it, or name another folder for the manifests"
        raise PlanningError(Reason.CANNOT_BE_WRITTEN, why)


def check_no_links(folder: Path, clusters: Iterable[str]) -> None:
    """Raise PlanningError where a link is in place of the folder of one of these clusters."""
    for cluster in clusters:
        if (folder / CLUSTERS / cluster).is_symlink():
            why = f"{folder / CLUSTERS / cluster} is a symbolic link: replace it by a folder, and run it again"
            raise PlanningError(Reason.CANNOT_BE_WRITTEN, why)


def emit(
    folder: Path,
    manifests: Iterable[tuple[str, str, str]],
    about: Mapping[str, Any],
    states: Mapping[str, Mapping[str, Any]],
    *,
    hidden: bool = False,
) -> Emitted:
    """Write the tree of a run.

    `manifests` yields cluster, file name and text, one manifest at a time (`rendered`). `about` describes the whole run
    in the run manifest, and `states` each cluster, those left out included. With `hidden` there may be others.

    Raises PlanningError (CannotBeWritten).
    """
    clusters = folder / CLUSTERS
    with writing(folder):
        check_no_links(folder, (cluster for cluster, state in states.items() if state["state"] in PLANNED))
        written = removed = 0
        wanted = set()
        for cluster, name, text in manifests:
            wanted.add(f"{cluster}/{name}")
            written += write(clusters / cluster / name, text.encode())
        folders = [each for each in sorted(clusters.glob("*")) if each.is_dir() and not each.is_symlink()]
        unknown = hidden or any(OBJECT_NAME.fullmatch(cluster) is None for cluster in states)  # of a misnamed folder
        gone = [] if unknown else [each.name for each in folders if each.name not in states]
        dropped = []
        for place in folders:
            ours = place.name in gone or (place.name in states and states[place.name]["state"] in PLANNED)
            stale = [file for file in place.glob(WAVES) if ours and f"{place.name}/{file.name}" not in wanted]
            unfinished = place.glob(f".{WAVES}{UNFINISHED}")  # of a run that was killed
            for file in (*stale, *unfinished):
                file.unlink()
            removed += len(stale)
            if stale and place.name in gone:
                dropped.append(place.name)
            if any(place.iterdir()):
                continue
            if stale:
                write(place / "README.md", KEPT)
            else:
                place.rmdir()
        entries = {
            cluster: {**state, **(_digest(clusters / cluster) if OBJECT_NAME.fullmatch(cluster) else {})}
            for cluster, state in states.items()
        }
        run = json.dumps({**about, "clusters": entries}, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
        write(folder / RUN, run.encode())
    return Emitted(written, len(wanted) - written, removed, tuple(dropped))


def rendered(manifests: Sequence[Manifest], waves: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return a cluster's files by name, from manifests without entries; `waves` are the entries of each, as JSON."""
    width = len(str(len(manifests)))
    numbered = enumerate(zip(manifests, waves, strict=True), 1)
    return {f"wave-{number:0{width}}.yaml": _text(*each, number) for number, each in numbered}


def _text(manifest: Manifest, entries: Sequence[str], number: int) -> str:
    """Return a manifest with one line for each partition, for a review of what becomes of each; JSON is YAML, too."""
    metadata = {**manifest["metadata"], "annotations": {SYNC_WAVE: str(number), SYNC_OPTIONS: ASKED}}
    head = {**manifest, "metadata": metadata}
    lines = "".join(f"  - {entry}\n" for entry in entries)
    return f"{COMMENT}{dump([head])}  partitions:\n{lines}"


def _digest(folder: Path) -> dict[str, Any]:
    """Return how many waves a cluster has in the tree, and a hash of their files."""
    digest, files = hashlib.sha256(), sorted(folder.glob(WAVES))
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)}\n".encode() + content)
    return {"waves": len(files), "digest": f"sha256:{digest.hexdigest()}"}

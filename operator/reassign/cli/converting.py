"""The commands `convert` and `rollback`: manifests from the stock tool's JSON, the reverse, and a manifest's undo."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from reassign.cli import output as out
from reassign.cli.kubeconfig import namespace_of
from reassign.cli.objects import missing
from reassign.cli.options import ManifestOutput, cluster_ref, refuse, template
from reassign.cli.refs import Kube
from reassign.cli.source import print_notes
from reassign.errors import PlanningError, Reason
from reassign.inspect import cluster as live
from reassign.kube.client import Kind
from reassign.kube.login import Login
from reassign.manifests import documents, stock
from reassign.manifests.objects import Manifest
from reassign.manifests.rollback import irreversible, lists_all, rollback
from reassign.text import listed, source

MANIFEST = re.compile(r"""(^|[{,\s])["']?(kind|apiVersion)["']?\s*:""")
"""What a manifest has, in YAML or JSON."""


def run(
    file: Path,
    cluster: str | None,
    kube: Kube,
    name: str,
    max_partitions: int,
    throttle: str | None,
    of_manifests: Sequence[str] = (),
) -> None:
    """Write the file's content in the other form; `of_manifests` are the options given that only manifests have."""
    text = out.read(file)
    if not _is_stock(text):
        manifests = documents.read(text, file)
        refuse(of_manifests, f"on the stock tool's JSON, which {source(file)} becomes")
        with _of(file):
            written = stock.write(manifests)
        print_notes(filter(None, [stock.left_out(manifests)]))
        out.write(written)
        return
    with _of(file):
        moves = stock.read(text)
    manifests = stock.manifests(
        moves.partitions,
        name=name,
        namespace=namespace_of(kube),
        cluster_ref=cluster_ref(cluster),
        template=template(throttle),
        max_partitions=max_partitions,
    )
    print_notes(moves.notes)
    out.write_objects(manifests, ManifestOutput.YAML)


@contextmanager
def _of(file: Path) -> Iterator[None]:
    """Name the file in what is wrong with its content."""
    try:
        yield
    except PlanningError as error:
        raise PlanningError(error.reason, f"{source(file)}: {error.message}") from None


def _is_stock(text: str) -> bool:
    """Whether a text is for the stock tool: JSON without a kind, or what is neither JSON nor has the fields of one."""
    try:
        document, _ = stock.first(text)
    except ValueError:
        return MANIFEST.search(text) is None
    return not (isinstance(document, dict) and "kind" in document)


def roll_back(name: str | None, kube: Kube, file: Path | None, output: ManifestOutput) -> None:
    """Write the reverse of the PartitionReassignment of that name, or of each one in a file."""
    namespace = namespace_of(kube)
    if file is None:
        out.write_objects([asyncio.run(_reverse(kube.login, namespace, name or ""))], output)
        return
    manifests = [_placed(manifest, namespace) for manifest in documents.read(out.read(file), file)]
    if long := [manifest["metadata"]["name"] for manifest in manifests if not lists_all(manifest)]:
        message = f"the status of {listed(long)} does not describe every partition: roll it back by its name"
        raise PlanningError(Reason.NOTHING_SELECTED, message)
    out.write_objects(list(_reverses(manifests)), output)


def _reverses(manifests: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield the reverse of each that has moved something, and name the others; raises where none has."""
    refusals: list[PlanningError] = []
    for manifest in manifests:
        try:
            reverse = rollback(manifest)
            print_notes(irreversible(manifest))
            yield reverse
        except PlanningError as error:
            if error.reason is not Reason.NOTHING_SELECTED or len(manifests) == 1:
                raise
            refusals.append(error)
    if len(refusals) == len(manifests):
        raise refusals[0]
    for refusal in refusals:
        out.say(f"note: {refusal.message}")


async def _reverse(login: Login, namespace: str, name: str) -> Manifest:
    async with live.api_server(login) as kube:
        obj = await kube.get(Kind.PARTITION_REASSIGNMENT, namespace, name)
        if obj is None:
            raise await missing(kube, namespace, name, [Kind.PARTITION_REASSIGNMENT])
        documents.check(obj, f"the PartitionReassignment {namespace}/{name}")
        records = [] if lists_all(obj) else await kube.list(Kind.REASSIGNMENT_RECORD, namespace)
    reverse = rollback(obj, records)
    print_notes(irreversible(obj, records))
    return reverse


def _placed(manifest: Manifest, namespace: str) -> Manifest:
    return manifest | {"metadata": {"namespace": namespace, **manifest["metadata"]}}

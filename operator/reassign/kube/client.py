"""Our side of the API server: reads, the finalizer, the status, Secrets; each with one request and a time-out.

The only writes to a user's object are our finalizer and the status, both bound to the resourceVersion that was
read: the client that changed the object in between wins, and a `ConflictError` says so. What we make is our own
ReassignmentRecords, a ConfigMap, when the brake is pulled, and the PartitionReassignments of a plan, which we suspend,
resume and delete as well. Nothing is retried here, since the loop reconciles again from what it observes.

The command line writes in its user's name: new objects, and fields of a spec and deletions, each of the two bound to
the version that was read.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.client.rest import RESTResponse
from kubernetes.aio.config import load_incluster_config
from pydantic_core import from_json

from reassign.api.broker_decommission import BrokerDecommission
from reassign.api.common import API_VERSION, FINALIZER
from reassign.api.kafka_cluster import KafkaCluster
from reassign.api.partition_reassignment import PartitionReassignment
from reassign.api.reassignment_plan import ReassignmentPlan
from reassign.api.reassignment_policy import ReassignmentPolicy
from reassign.api.reassignment_record import ReassignmentRecord
from reassign.errors import ApiServerError, ConflictError, MissingReferenceError, Reason, ReassignError
from reassign.kube import kubeconfig
from reassign.kube.clock import ServerClock
from reassign.kube.login import DEFAULT_LOGIN, Login

__all__ = ["REQUEST_SECONDS", "ClusterKey", "Kind", "KubeClient", "Object", "cluster_key", "has_finalizer"]

Object = dict[str, Any]
Objects = list[Object]  # within the class, list is a method
Strings = list[str]
ClusterKey = tuple[str, str]
"""Namespace and name of a KafkaCluster."""

FIELD_MANAGER = "kafka-reassign-operator"
"""The name of our writes in managedFields."""
REQUEST_SECONDS = 10.0
PAGE_OBJECTS = 20
"""Objects in one page of a list. Most pages come to 4 MB then, and none to more than 30 MB: while JSON is parsed, no
other thread of the process runs."""
LISTS = 5
"""How often a list is begun before the API server counts as unable to complete it."""
_DRY_RUN = (("dryRun", "All"),)
MESSAGE_CHARACTERS = 500  # a schema that is broken a thousand times says so a thousand times
_JSON, _JSON_PATCH, _MERGE_PATCH = "application/json", "application/json-patch+json", "application/merge-patch+json"
_JSON_HEADERS = {"Accept": _JSON, "Content-Type": _JSON}
_METADATA_ONLY = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_LIST_OF_METADATA = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
MAX_NAMES = 500
NO_JSON = 0
"""The status of what is not answered in JSON, such as the page of a proxy in between: the library has it too."""


class Kind(StrEnum):
    """Our kinds, as `kind` of an object has them."""

    KAFKA_CLUSTER = KafkaCluster.KIND
    PARTITION_REASSIGNMENT = PartitionReassignment.KIND
    REASSIGNMENT_PLAN = ReassignmentPlan.KIND
    BROKER_DECOMMISSION = BrokerDecommission.KIND
    REASSIGNMENT_POLICY = ReassignmentPolicy.KIND
    REASSIGNMENT_RECORD = ReassignmentRecord.KIND

    @property
    def plural(self) -> str:
        return _PLURALS[self.value]


_KINDS = (
    KafkaCluster,
    PartitionReassignment,
    ReassignmentPlan,
    BrokerDecommission,
    ReassignmentPolicy,
    ReassignmentRecord,
)
_PLURALS = {kind.KIND: kind.PLURAL for kind in _KINDS}


def cluster_key(obj: Object) -> ClusterKey:
    """Return the KafkaCluster that an object is, or that it refers to."""
    meta = obj["metadata"]
    ref = meta if obj["kind"] == Kind.KAFKA_CLUSTER else obj["spec"]["clusterRef"]
    return ref.get("namespace", meta["namespace"]), ref["name"]


def has_finalizer(obj: Object) -> bool:
    """Whether our finalizer is on an object."""
    return FINALIZER in obj["metadata"].get("finalizers", ())


class KubeClient:
    """Requests to the API server as the pod's ServiceAccount, or as the kubeconfig says outside of a pod.

    Each method can raise `ApiServerError` (try again later) and `ReassignError` with `NotAuthorized`. An async
    context manager: connections are made on entry's event loop and closed on exit. `before_write` is called right
    before each request that changes something; when it raises, nothing is sent. `written` gets what was written, as
    in `partitionreassignments/status`, and the bytes that were sent for that.
    """

    def __init__(
        self,
        before_write: Callable[[], None] = lambda: None,
        written: Callable[[str, int], None] = lambda *_: None,
        login: Login = DEFAULT_LOGIN,
    ) -> None:
        self._before_write, self._written, self._login = before_write, written, login
        self._clock = ServerClock()

    def now(self) -> datetime:
        """Return the time by the API server's clock."""
        return self._clock.now()

    async def __aenter__(self) -> Self:
        trace = aiohttp.TraceConfig()
        trace.on_request_chunk_sent.append(self._sent)
        configuration: Configuration = type.__call__(Configuration)  # a plain call would copy a process-wide default
        configuration.trace_configs = [trace]
        try:
            await self._configure(configuration)
            self._api = ApiClient(configuration)
        except Exception as error:  # the library raises anything for a kubeconfig that is not one
            why = kubeconfig.why_unusable(error, configuration, None if self._in_pod else self._login)
            raise ApiServerError(
                f"the kubeconfig cannot be used ({why}); name one with --kubeconfig or KUBECONFIG, or see "
                "`kubectl config`"
            ) from None
        return self

    @property
    def _in_pod(self) -> bool:
        """Whether the pod's own ServiceAccount is used."""
        return not kubeconfig.is_named(self._login) and "KUBERNETES_SERVICE_HOST" in os.environ

    async def _configure(self, configuration: Configuration) -> None:
        if self._in_pod:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            await kubeconfig.configure(configuration, self._login)

    async def _sent(self, _: object, __: object, chunk: aiohttp.TraceRequestChunkSentParams) -> None:
        self._written(_written_resource(chunk.url.path), len(chunk.chunk))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._api.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return the object as it is now; None when there is none."""
        return await self.request("GET", _path(kind.plural, namespace, name), missing_ok=True)

    async def metadata(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return the object's metadata as it is now, without the rest, which can be large; None when there is none."""
        return await self.request("GET", _path(kind.plural, namespace, name), missing_ok=True, accept=_METADATA_ONLY)

    async def list(
        self, kind: Kind, namespace: str | None = None, take: Callable[[Object], Object] = lambda obj: obj
    ) -> Objects:
        """Return all objects of a kind, of one namespace or all, as they were at one moment; each as `take` makes it.

        Pages are read, and objects taken, beside the event loop.
        """
        path = _path(kind.plural, namespace)
        for _ in range(LISTS):
            found: Objects = []
            token: str | None = ""
            with suppress(_ExpiredError):
                while token is not None:
                    page, token = await self._page(path, token, kind, take)
                    found += page
                return found
        raise ApiServerError(f"the API server forgets the list of {kind.plural} before all its pages are read")

    async def _page(
        self, path: str, token: str, kind: Kind, take: Callable[[Object], Object]
    ) -> tuple[Objects, str | None]:
        """Return one page of a list, and what the next one continues from; None after the last."""
        named = {"apiVersion": API_VERSION, "kind": kind.value}  # a list says that once, not on each item

        def read(answer: RESTResponse) -> tuple[Objects, str | None]:
            if answer.status == HTTPStatus.GONE:
                raise _ExpiredError
            if answer.status != HTTPStatus.OK:
                self._deserialized(answer)
            page = _json_object(lambda: from_json(cast(bytes, answer.data)))
            return [take(named | item) for item in page.get("items") or ()], page["metadata"].get("continue") or None

        query = [("limit", str(PAGE_OBJECTS)), *([("continue", token)] if token else [])]
        with _translating("GET", path):
            return await asyncio.to_thread(read, await self._send("GET", path, query=query))

    async def events(self, obj: Object) -> Objects:
        """Return the events about an object, in the form of core/v1."""
        meta = obj["metadata"]
        query = [("fieldSelector", f"involvedObject.uid={meta['uid']}")]
        answer = await self.request("GET", f"/api/v1/namespaces/{meta['namespace']}/events", query=query)
        return list((answer or {}).get("items") or ())

    async def names(self, kind: Kind, namespace: str) -> Strings:
        """Return the names of the objects of a kind in a namespace, sorted, at most 500: what a user chooses from."""
        query = [("limit", str(MAX_NAMES))]
        answer = await self.request("GET", _path(kind.plural, namespace), accept=_LIST_OF_METADATA, query=query)
        return sorted(item["metadata"]["name"] for item in (answer or {}).get("items") or ())

    async def namespaces(self) -> Strings:
        """Return the names of the namespaces, sorted, at most 500."""
        query = [("limit", str(MAX_NAMES))]
        answer = await self.request("GET", "/api/v1/namespaces", accept=_LIST_OF_METADATA, query=query)
        return sorted(item["metadata"]["name"] for item in (answer or {}).get("items") or ())

    async def add_finalizer(self, obj: Object) -> Object | None:
        """Put our finalizer on the object; return None when the object is gone."""
        return await self._write_finalizers(obj, [*_others(obj), FINALIZER])

    async def remove_finalizer(self, obj: Object) -> Object | None:
        """Remove our finalizer from the object; return None when the object is gone."""
        return await self._write_finalizers(obj, _others(obj))

    async def _write_finalizers(self, obj: Object, finalizers: Strings) -> Object | None:
        if finalizers == obj["metadata"].get("finalizers", []):
            return obj
        change = {"op": "add", "path": "/metadata/finalizers", "value": finalizers}
        return await self._patch(obj, "", change)

    async def write_status(self, obj: Object, status: Object) -> Object | None:
        """Make this the whole status of the object; return None when the object is gone.

        Raises `ReassignError` with `ResourceTooLarge` when the object would not fit into the API server's
        storage, and with `RequestFailed` when the schema does not allow the status.
        """
        return await self._patch(obj, "/status", {"op": "add", "path": "/status", "value": status})

    async def create(self, obj: Mapping[str, Any], manager: str = FIELD_MANAGER, *, dry_run: bool = False) -> Object:
        """Make an object; raises `ConflictError` when there is one of that name.

        With `dry_run` the API server makes all of its checks, and stores nothing.
        """
        path = _path(_PLURALS[obj["kind"]], obj["metadata"]["namespace"])
        made = await self.request("POST", path, dict(obj), manager=manager, query=_DRY_RUN if dry_run else ())
        assert made is not None
        return made

    async def write_record(self, obj: Object, spec: Object, *, held: bool) -> Object | None:
        """Make this the content of a ReassignmentRecord, with our finalizer where `held`; return None when it is gone.

        Nothing can put a finalizer on what is being deleted.
        """
        changes = [{"op": "add", "path": "/spec", "value": spec}]
        if held and not obj["metadata"].get("deletionTimestamp"):
            changes.append({"op": "add", "path": "/metadata/finalizers", "value": [*_others(obj), FINALIZER]})
        return await self._patch(obj, "", *changes)

    async def suspend(self, obj: Object, suspended: bool) -> Object | None:
        """Write spec.suspend of a PartitionReassignment that we made; return None when it is gone."""
        return await self._patch(obj, "", {"op": "add", "path": "/spec/suspend", "value": suspended})

    async def remove_entries(self, obj: Object, partitions: Collection[tuple[str, int]]) -> Object | None:
        """Take partitions, by topic and number, out of a PartitionReassignment; return None when it is gone."""
        kept = [entry for entry in obj["spec"]["partitions"] if (entry["topic"], entry["partition"]) not in partitions]
        return await self._patch(obj, "", {"op": "replace", "path": "/spec/partitions", "value": kept})

    async def write_spec(self, obj: Object, spec: Object, manager: str, *, dry_run: bool = False) -> Object | None:
        """Merge these fields into the spec of this version of an object; return None when it is gone.

        With `dry_run` the API server makes all of its checks, and stores nothing.
        """
        meta = obj["metadata"]
        same = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        return await self.request(
            "PATCH",
            _path(_PLURALS[obj["kind"]], meta["namespace"], meta["name"]),
            {"metadata": same, "spec": spec},
            content_type=_MERGE_PATCH,
            manager=manager,
            missing_ok=True,
            query=_DRY_RUN if dry_run else (),
        )

    async def delete(self, obj: Object, *, dry_run: bool = False) -> Object | None:
        """Delete this version of an object; return what finalizers hold back, None when it is gone.

        With `dry_run` the API server makes all of its checks, and deletes nothing.
        """
        meta = obj["metadata"]
        same = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
        path = _path(_PLURALS[obj["kind"]], meta["namespace"], meta["name"])
        options = {"preconditions": same, **({"dryRun": ["All"]} if dry_run else {})}  # beside these no query counts
        answer = await self.request("DELETE", path, options, missing_ok=True)
        return answer if answer and answer["kind"] == obj["kind"] else None  # else a Status, which says that it is gone

    async def _patch(self, obj: Object, subresource: str, *changes: Object) -> Object | None:
        """Send one JSON patch. The resourceVersion in it, when it is not the current one, makes the answer 409."""
        meta = obj["metadata"]
        same = {"op": "replace", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"]}
        path = _path(_PLURALS[obj["kind"]], meta["namespace"], meta["name"]) + subresource
        answer = await self.request(
            "PATCH",
            path,
            [same, *changes],
            content_type=_JSON_PATCH,
            manager=FIELD_MANAGER,
            missing_ok=True,
        )
        if answer is not None and answer["metadata"]["uid"] != meta["uid"]:
            return None  # cannot be while resource versions are unique; another object is not ours to follow
        return answer

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """Return the decoded data of a Secret, by key; raises `MissingReferenceError` when there is none."""
        answer = await self.request("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}", missing_ok=True)
        if answer is None:
            raise MissingReferenceError(
                Reason.SECRET_NOT_FOUND, f"there is no Secret {name} in namespace {namespace}; create it"
            )
        return {key: base64.b64decode(value or "") for key, value in (answer.get("data") or {}).items()}

    async def create_config_map(
        self, namespace: str, name: str, data: Mapping[str, str], labels: Mapping[str, str]
    ) -> None:
        """Make a ConfigMap that cannot be changed afterwards; raises `ConflictError` when there is one of that name."""
        metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": dict(data)}
        await self.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", body)

    async def request(
        self,
        verb: str,
        path: str,
        body: object = None,
        *,
        content_type: str = _JSON,
        manager: str = "",
        missing_ok: bool = False,
        accept: str = _JSON,
        query: Sequence[tuple[str, str]] = (),
    ) -> Object | None:
        """Send one request in the name of a field manager; return the answer, or None for 404 when that is expected."""
        headers = {"Accept": accept, "Content-Type": content_type}
        named = [("fieldManager", manager)] if manager else []
        with _translating(verb, path):
            try:
                return self._deserialized(await self._send(verb, path, body, headers, [*query, *named]))
            except ApiException as error:
                if error.status == 404 and missing_ok:
                    return None
                raise

    async def _send(
        self,
        verb: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] = _JSON_HEADERS,
        query: Sequence[tuple[str, str]] = (),
    ) -> RESTResponse:
        # The calls that the library generates per resource would each need their own types, time-out and
        # content type; its client underneath does the same for all.
        async with asyncio.timeout(REQUEST_SECONDS):
            call = await self._api.param_serialize(
                verb,
                path,
                query_params=[*query],
                header_params=dict(headers),
                body=body,
                auth_settings=["BearerToken"],
            )
            if verb != "GET":
                self._before_write()
            sent = self._clock.sent()
            response = await self._api.call_api(*call, _request_timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS))
            self._clock.answered(response.headers.get("Date"), sent)
            await response.read()  # type: ignore[no-untyped-call]
        return response

    def _deserialized(self, response: RESTResponse) -> Object:
        """Return what was answered; raises ApiException for an error."""
        types = {"2XX": "object", "4XX": "object", "5XX": "object"}
        return _json_object(lambda: self._api.response_deserialize(response, types).data)


class _ExpiredError(Exception):
    """The API server does not have the moment any more that the pages before were of."""


@contextmanager
def _translating(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        raise _translated(error, verb, path) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ApiServerError(f"the API server did not answer: {error or type(error).__name__}") from error


def _json_object(read: Callable[[], object]) -> Object:
    """Return the object that was read; raises ApiException for anything else."""
    try:
        answer = read()
    except ValueError as error:
        raise ApiException(NO_JSON) from error
    if not isinstance(answer, dict):
        raise ApiException(NO_JSON)
    return answer


def _others(obj: Object) -> Strings:
    """Return the finalizers of other clients."""
    return [f for f in obj["metadata"].get("finalizers", ()) if f != FINALIZER]


def _path(plural: str, namespace: str | None, name: str | None = None) -> str:
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{API_VERSION}{scope}/{plural}" + (f"/{name}" if name else "")


def _written_resource(path: str) -> str:
    """The resource, and its subresource, that a path names: one in a namespace, or what is asked of the API server."""
    before, _, named = path.partition("/namespaces/")
    if not named:
        return before.rpartition("/")[2]
    _, plural, _, *subresource = [*named.split("/"), "", ""]
    return "/".join(filter(None, (plural, *subresource)))


def _translated(error: ApiException, verb: str, path: str) -> ReassignError:
    message = _message(error)
    if error.status == 409:
        return ConflictError(message)
    if error.status == 403 and "because it is being terminated" in message:
        return ReassignError(
            Reason.REQUEST_FAILED, f"the namespace is being deleted, and nothing new can be made in it: {message}"
        )
    if error.status == 403:
        return ReassignError(
            Reason.NOT_AUTHORIZED,
            f"to {verb} {path} is not allowed: {message}; an administrator of the cluster can grant it, "
            "to the operator by the chart's Roles",
        )
    if error.status == 413 or _too_large(message):
        return ReassignError(
            Reason.RESOURCE_TOO_LARGE, f"the object is too large for the API server ({message}); split it"
        )
    if error.status == NO_JSON:
        return ApiServerError(
            f"{verb} {path} was not answered in JSON: see what stands between the operator and the API server"
        )
    if error.status in (401, 408, 429) or error.status is None or error.status >= 500:
        return ApiServerError(f"the API server answered {error.status} to {verb} {path}: {message}")
    if error.status == 404 and API_VERSION in path and "namespaces" not in message:
        return ReassignError(
            Reason.REQUEST_FAILED, f"the API server does not serve {API_VERSION}: {message}; install the chart's CRDs"
        )
    return ReassignError(Reason.REQUEST_FAILED, f"the API server refused {verb} {path}: {message}")


def _too_large(message: str) -> bool:
    # etcd's limit comes back as 500, gRPC's as 500 or 422, each in its own words.
    return "request is too large" in message or "message larger than max" in message


def _message(error: ApiException) -> str:
    try:
        return str(json.loads(error.body or "")["message"])[:MESSAGE_CHARACTERS]
    except (ValueError, TypeError, KeyError):
        return str(error.reason)

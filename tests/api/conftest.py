"""One real API server, with our CRDs, for all tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from localplatform.controlplane import ApiServer, api_server
from localplatform.processes import wait_until
from tests.api.kubectl import Kubectl, RefusedError
from tests.api.site import Site
from tests.forwarder import Forwarder, forwarding

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with api_server(tmp_path_factory.mktemp("api")) as server:
        kubectl = Kubectl(server)
        kubectl("apply", "--server-side", "-f", str(CRDS))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=5m")
        assert wait_until(lambda: _served(kubectl))
        yield server


def _served(kubectl: Kubectl) -> bool:
    """An established kind is not yet a served one: its documentation comes last."""
    try:
        kinds = ("kcl", "kpr", "krp", "reassignmentrecords")
        for kind in kinds:
            kubectl("get", kind)
        return all(kubectl("explain", f"{kind}.spec") for kind in kinds)
    except RefusedError:
        return False


@pytest.fixture(scope="session")
def kubectl(api: ApiServer) -> Kubectl:
    """kubectl in namespace default."""
    return Kubectl(api)


@pytest.fixture
def kubeconfig(api: ApiServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Chooses as whom the adapter logs in."""

    def log_in(user: str) -> None:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig_of(user)))

    log_in("administrator")
    return log_in


@pytest.fixture
def sandbox(api: ApiServer, request: pytest.FixtureRequest) -> Kubectl:
    """kubectl in a namespace that only this test uses."""
    namespace = f"test-{abs(hash(request.node.nodeid)):x}"
    Kubectl(api)("create", "namespace", namespace)
    return Kubectl(api, namespace)


@pytest.fixture
def site(api: ApiServer, request: pytest.FixtureRequest) -> Iterator[Site]:
    site = Site(api, f"test-{abs(hash(request.node.nodeid)):x}")
    yield site
    for kubectl in (site.a, site.b):  # the next operator serves all namespaces
        for kind in ("kpr", "kcl"):
            kubectl("delete", kind, "--all", "--wait=false")


@pytest.fixture
def forwarder(api: ApiServer) -> Iterator[Forwarder]:
    port = urlsplit(api.url).port
    assert port
    with forwarding(port) as forwarder:
        yield forwarder

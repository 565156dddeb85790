"""`make screenshots`: the pictures in docs/, each of what a real run on the platform made.

`watch` and `report` show a PartitionReassignment whose moves wait for each other. The report on a fleet is of made
clusters and the platform's own, as `make demo-fleet` plans them.
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright
from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

from localplatform import operator_, parts, prerequisites
from localplatform.brokers import Brokers
from localplatform.console import PlatformError
from localplatform.controlplane import ApiServer
from localplatform.demo import succeeded
from localplatform.demo_fleet import TOPICS as FLEET_TOPICS
from localplatform.demo_fleet import DemoFleet
from localplatform.machine import CHECKOUT
from localplatform.processes import run
from localplatform.story import tell
from localplatform.workload import Workload

PICTURES = CHECKOUT / "docs" / "pictures"
NAME, MB = "march", 10**6
TOPICS = {"orders": (8, 8 * MB), "payments": (6, 5 * MB)}
RATE, AT_ONCE = "512Ki", 5
COLUMNS, ROWS, WATCH_SECONDS = 92, 24, 30
FRAME = re.compile(r"(?:\r|\x1b\[1A|\x1b\[2K)*\x1b\[2K")
"""What a terminal is told before it is drawn on anew."""
MAX_BYTES = 150_000


class Screenshots:
    """One picture after the other; what was made for them on the platform is gone afterwards."""

    def __init__(self, server: ApiServer, cluster: Brokers, console: Console) -> None:
        self.server, self.console = server, console
        self.kafka = Workload(cluster.bootstrap_servers)
        self.fleet = DemoFleet(server, cluster, console)

    def run(self) -> None:
        prerequisites.require(["browser"])
        self._remove()
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
                self.reassignment(browser)
                self.planned_fleet(browser)
                browser.close()
        finally:
            with suppress(PlatformError, TimeoutError):
                self._remove()

    def reassignment(self, browser: Browser) -> None:
        """The live view while it moves, and the report when it has succeeded."""
        entries = []
        for topic, (partitions, size) in TOPICS.items():
            self.kafka.create(topic, [[p % 4, (p + 1) % 4] for p in range(partitions)], size)
            entries += [{"topic": topic, "partition": p, "replicas": [p % 4, (p + 2) % 4]} for p in range(partitions)]
        spec: dict[str, Any] = {"clusterRef": {"name": operator_.CLUSTER}, "partitions": entries}
        spec |= {"throttle": {"interBroker": RATE}, "concurrency": {"partitions": AT_ONCE}}
        meta = {"name": NAME, "namespace": operator_.CLUSTER_NAMESPACE}
        manifest = {"apiVersion": "kafka.reassign.dev/v1alpha1", "kind": "PartitionReassignment"}
        self._kubectl("apply", "-f", "-", input=json.dumps(manifest | {"metadata": meta, "spec": spec}))
        self._save(_terminal(browser, self._watched()), "watch.png")
        deadline = time.monotonic() + 300
        while not succeeded(json.loads(self._kubectl("get", "kpr", NAME, "-o", "json"))):
            if time.monotonic() > deadline:
                raise PlatformError(f"{NAME} has not succeeded: kubectl describe kpr/{NAME}")
            time.sleep(1)
        text = run([*self._program("report")], env=self._environment)
        page = browser.new_page(viewport={"width": 1160, "height": 1150})
        page.set_content(text)
        self._save(page, "report.png")

    def planned_fleet(self, browser: Browser) -> None:
        """The top of the report, and a planned cluster in it."""
        self.fleet.snapshots()
        self.fleet.plan()
        page = browser.new_page(viewport={"width": 1160, "height": 920})
        page.goto(self.fleet.report.as_uri())
        self._save(page, "fleet-report.png")
        page.locator("tr[data-state=Planned] .open").first.click()
        page.locator("tr[data-state=Planned]").first.evaluate("row => row.scrollIntoView()")
        self._save(page, "fleet-report-cluster.png")

    def _watched(self) -> str:
        """The last whole picture that `watch` drew on a terminal within some seconds."""
        leader, follower = pty.openpty()
        size = {"COLUMNS": str(COLUMNS), "LINES": str(ROWS), "TERM": "xterm-256color"}
        environment = {**os.environ, **self._environment, **size}
        with subprocess.Popen(self._program("watch"), env=environment, stdout=follower, stderr=follower) as program:
            os.close(follower)
            seen, end = b"", time.monotonic() + WATCH_SECONDS
            with os.fdopen(leader, "rb", buffering=0) as screen, suppress(OSError):  # as the other end is closed
                while data := screen.read(65536):
                    seen += data
                    if time.monotonic() > end:
                        program.terminate()
        return FRAME.split(seen.decode())[-2].replace("\r", "")

    @property
    def _environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.server.kubeconfig)}

    def _program(self, verb: str) -> list[str]:
        return [str(parts.plugin() / "kubectl-kafka_reassign"), verb, NAME, "-n", operator_.CLUSTER_NAMESPACE]

    def _save(self, page: Page, name: str) -> None:
        picture = PICTURES / name
        page.screenshot(path=picture)
        size = picture.stat().st_size
        self.console.print(f"{picture.relative_to(CHECKOUT)}: {size} bytes")
        if size > MAX_BYTES:
            raise PlatformError(f"{picture} has more than {MAX_BYTES} bytes: show less of the page")

    def _kubectl(self, *arguments: str, input: str | None = None) -> str:
        return self.server.kubectl(f"--namespace={operator_.CLUSTER_NAMESPACE}", *arguments, input=input)

    def _remove(self) -> None:
        self._kubectl("delete", "kpr", NAME, "--ignore-not-found", "--timeout=5m")
        self.kafka.delete([*TOPICS, *FLEET_TOPICS])


def _terminal(browser: Browser, text: str) -> Page:
    """A page that shows what a terminal did."""
    console = Console(record=True, file=io.StringIO(), width=COLUMNS, force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text.rstrip()))
    page = browser.new_page(viewport={"width": 910, "height": 400})
    page.set_content(console.export_html(theme=SVG_EXPORT_THEME, inline_styles=True))
    box = page.locator("pre").bounding_box()
    assert box
    page.set_viewport_size({"width": 910, "height": int(box["height"]) + 32})
    return page


if __name__ == "__main__":
    sys.exit(tell(Screenshots))

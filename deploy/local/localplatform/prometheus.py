"""A real Prometheus and promtool, built from the Go module that deploy/local/prometheus pins.

They are built without the pages for browsers, and without the ways to discover targets in clouds.
"""

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localplatform import cache
from localplatform.console import PlatformError, say
from localplatform.golang import go
from localplatform.processes import Processes, free_port

MODULE = Path(__file__).parents[1] / "prometheus"
INTERVAL = "1s"


def built() -> Path:
    """The folder with the programs `prometheus` and `promtool`; built once."""
    return cache.entry("prometheus", [MODULE / "go.mod", MODULE / "go.sum", "1"], _build)


def _build(place: Path) -> None:
    say("building Prometheus from source: once, about 4 minutes on two cores")
    go(MODULE, "build", "-trimpath", "-tags", "remove_all_sd,netgo", "-ldflags", "-s -w", "-o", f"{place}/", "tool")


def promtool(*arguments: str) -> str:
    """What promtool prints; a failure is an error with all that it says."""
    finished = subprocess.run([built() / "promtool", *arguments], capture_output=True, text=True, timeout=60)
    if finished.returncode:
        raise PlatformError(f"promtool {' '.join(arguments)}: {finished.stdout}{finished.stderr}")
    return finished.stdout


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def ask(self, path: str, **parameters: str) -> Any:
        """The data that its API answers with."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{query}", timeout=10) as answer:
            return json.load(answer)["data"]

    def firing(self) -> dict[str, dict[str, Any]]:
        """The alerts that fire, by name, each with its labels and annotations."""
        alerts = self.ask("alerts")["alerts"]
        return {alert["labels"]["alertname"]: alert for alert in alerts if alert["state"] == "firing"}


def start(processes: Processes, directory: Path, rules: Path, ports: Sequence[int]) -> Prometheus:
    """Start one that reads the metrics on these ports and evaluates the rules, both every second."""
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "prometheus.json"  # JSON is YAML
    targets = [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
    config.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": INTERVAL, "scrape_timeout": INTERVAL, "evaluation_interval": INTERVAL},
                "rule_files": [str(rules)],
                "scrape_configs": [{"job_name": "operator", "static_configs": targets}],
            }
        )
    )
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={config}", f"--storage.tsdb.path={directory}/data", f"--web.listen-address={address}"]
    process = processes.start("prometheus", [built() / "prometheus", *options])
    found = Prometheus(f"http://{address}")
    processes.wait("Prometheus", lambda: _answers(found), process)
    return found


def _answers(prometheus: Prometheus) -> bool:
    try:
        return "version" in prometheus.ask("status/buildinfo")
    except OSError:
        return False

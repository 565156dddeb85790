"""What the platform takes of this machine, of which there is one: folders, a bridge, an owner.

Everything is at a fixed place, so that whatever an interrupted run left behind can be found and removed.
"""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from localplatform.console import PlatformError
from localplatform.processes import Processes, publish, run, wait_until

CHECKOUT = Path(__file__).resolve().parents[3]
LOCAL = CHECKOUT / ".local"
RUN = Path("/run/kafka-reassign-local")
STATE = Path("/var/lib/kafka-reassign-local")
OWNER = RUN / "owner.json"

BRIDGE = "kreassign0"
ADDRESS = "10.250.0.1"  # of the node, on the bridge; pods and Services are in 10.250.1.0/24 and 10.250.2.0/24
NETWORK = "10.250.0.0/22"
IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


@dataclass(frozen=True)
class Owner:
    """The checkout that the platform was started from, and what the machine was like before."""

    checkout: str
    ip_forward: str


def processes() -> Processes:
    """The platform's processes."""
    return Processes(RUN / "processes", LOCAL / "logs")


def owner() -> Owner | None:
    try:
        return Owner(**json.loads(OWNER.read_text()))
    except FileNotFoundError:
        return None


def others() -> str | None:
    """Another checkout that the platform was started from, whether or not anything of it still runs."""
    found = owner()
    if found is None or found.checkout == str(CHECKOUT) or not Path(found.checkout).is_dir():
        return None  # a checkout that is gone cannot be asked to stop what it started, so any may
    return found.checkout


def claim() -> None:
    """Make this checkout the owner of a machine on which nothing of the platform is left."""
    routes = json.loads(run(["ip", "-j", "route", "show", "root", NETWORK]))
    if routes:
        taken = ", ".join(f"{route['dst']} on {route.get('dev')}" for route in routes)
        raise PlatformError(f"the platform uses the network {NETWORK}, but this machine has a route there: {taken}")
    for folder in (RUN, STATE, LOCAL):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    publish(OWNER, json.dumps(asdict(Owner(str(CHECKOUT), IP_FORWARD.read_text().strip()))))


def add_bridge() -> None:
    """A device with an address that pods, node and brokers all reach; forward packets between them."""
    if not Path(f"/sys/class/net/{BRIDGE}").exists():
        run(["ip", "link", "add", BRIDGE, "type", "bridge"])
    run(["ip", "address", "replace", f"{ADDRESS}/24", "dev", BRIDGE])
    run(["ip", "link", "set", BRIDGE, "up"])
    IP_FORWARD.write_text("1")


def release() -> None:
    """Give back what `claim` and `add_bridge` took; everything that runs has been stopped before."""
    remove_devices(lambda device: device["ifname"] == BRIDGE)
    if found := owner():
        IP_FORWARD.write_text(found.ip_forward)
    remove_folder(STATE)
    remove_folder(RUN)


def remove_devices(ours: Callable[[dict[str, object]], bool]) -> None:
    """Delete the network devices, as `ip -j address` describes them, that are ours."""
    for device in json.loads(run(["ip", "-j", "address"])):
        if ours(device):
            run(["ip", "link", "delete", str(device["ifname"])])


def remove_folder(folder: Path) -> None:
    """Unmount everything below the folder, then remove it: never anything that is still mounted there."""
    for mount in sorted(_mounts_below(folder), reverse=True):
        run(["umount", "-l", mount])
    if left := _mounts_below(folder):
        raise PlatformError(f"still mounted: {', '.join(left)}")
    shutil.rmtree(folder, ignore_errors=True)


def kill_all(what: str, ours: Callable[[Path], bool]) -> None:
    """End the processes (folders below /proc) that are ours, at once, and wait until they are gone."""

    def found() -> list[int]:
        pids = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return [int(pid.name) for pid in pids if _applies(ours, pid)]

    def gone() -> bool:
        for pid in (left := found()):
            os.kill(pid, signal.SIGKILL)
        return not left

    if not wait_until(gone, 20):
        raise PlatformError(f"{what} do not end: {found()}")


def _applies(ours: Callable[[Path], bool], process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX" and ours(process)
    except OSError:  # it ended meanwhile
        return False


def _mounts_below(folder: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [point for point in points if Path(point).is_relative_to(folder)]

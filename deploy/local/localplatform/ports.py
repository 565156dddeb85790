"""TCP ports for brokers: free ones for tests, and a clear word about fixed ones that are taken."""

import errno
import random
import socket
from collections.abc import Sequence

from localplatform.console import PlatformError
from localplatform.processes import wait_until

LOOPBACK = "127.0.0.1"
CLAIM = 290  # above a base; no broker listens there
_claims: list[socket.socket] = []


def free_base_port() -> int:
    """A base whose ports nobody listens on, below those that the kernel gives to clients: a broker that
    restarts must find its port free. No other process gets the same base while this one lives."""
    ports = [first + node for first in (0, 40, 100, 150, 200) for node in range(8)]
    for base in random.sample(range(15000, 32000, 300), 50):
        if _claim(base) and not any(_taken((LOOPBACK, base + port)) for port in ports):
            return base
    raise PlatformError("no free ports for the brokers between 15000 and 32000")


def _claim(base: int) -> bool:
    """Whether it is ours: between finding ports free and listening on them seconds go by."""
    claim = socket.socket()
    try:
        claim.bind((LOOPBACK, base + CLAIM))
        claim.listen()
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True


def refuse_taken(addresses: Sequence[tuple[str, int]]) -> None:
    # those that just ended may need a moment
    if not wait_until(lambda: not any(map(_taken, addresses)), 5):
        taken = ", ".join(f"{host}:{port}" for host, port in addresses if _taken((host, port)))
        raise PlatformError(
            f"the brokers need {taken}, where something listens already: "
            "`ss -ltnp` shows what; make up KAFKA_PORT=19092 uses others"
        )


def _taken(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                raise PlatformError(f"this machine has no address {address[0]}: is the bridge up?") from None
            return True
        return False

"""A TCP port that leads to another one, and can be shut: an API server that is away, and comes back."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from localplatform.processes import free_port


class Forwarder:
    """A port of 127.0.0.1; nobody listens there until it is opened."""

    def __init__(self, target: int) -> None:
        self.port, self._target = free_port(), target
        self._listener: socket.socket | None = None
        self._open: list[socket.socket] = []

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        """Refuse new connections, and cut those that there are."""
        if self._listener:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._listener = None
        self.cut()

    def cut(self) -> None:
        """End all connections; new ones are taken."""
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                one, _ = listener.accept()
                other = socket.create_connection(("127.0.0.1", self._target))
                self._open += [one, other]
                for source, sink in ((one, other), (other, one)):
                    Thread(target=_copy, args=(source, sink), daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def forwarding(target: int) -> Iterator[Forwarder]:
    """A forwarder that is shut after the block."""
    forwarder = Forwarder(target)
    try:
        yield forwarder
    finally:
        forwarder.shut()

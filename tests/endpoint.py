"""A token endpoint for tests: it gives tokens to the client that it knows, or whatever else it is told to answer."""

from __future__ import annotations

import json
import ssl
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

CLIENT, SECRET = "mover", "a secret: 50 % + é"
Answer = tuple[int, str, dict[str, str]]


class TokenEndpoint:
    """`asked` has the form of every request that came with the right secret."""

    def __init__(self, url: str, issue: Callable[[], dict[str, Any]]) -> None:
        self.url = url
        self.secret = SECRET
        self.issue = issue
        self.asked: list[dict[str, str]] = []
        self.other: Answer | None = None
        """Status, body and headers of every answer, instead of a token."""

    def answer(self, authorization: str, form: dict[str, str]) -> Answer:
        kind, _, encoded = authorization.partition(" ")
        identity = b64decode(encoded).decode().split(":")
        if kind != "Basic" or [unquote_plus(part) for part in identity] != [CLIENT, self.secret]:
            return 401, json.dumps({"error": "invalid_client", "error_description": f"no: {identity}"}), {}
        self.asked.append(form)
        return self.other or (200, json.dumps(self.issue()), {})


@contextmanager
def token_endpoint(issue: Callable[[], dict[str, Any]], tls: ssl.SSLContext | None = None) -> Iterator[TokenEndpoint]:
    """On loopback, while the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            status, answer, headers = endpoint.answer(self.headers["Authorization"], dict(parse_qsl(body)))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(answer.encode())), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            pass  # a client that does not trust us hangs up

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    endpoint = TokenEndpoint(f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}/token", issue)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

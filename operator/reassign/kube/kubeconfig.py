"""A kubeconfig as the library reads it, and what is wrong with one, in plain words and without its secrets."""

from __future__ import annotations

import ast
import logging
import os
import re
import sys
from binascii import Error as Base64Error
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from ssl import SSLError
from typing import Any
from urllib.parse import urlsplit

from kubernetes.aio.client import Configuration
from kubernetes.aio.config import kube_config, load_kube_config
from yaml import YAMLError

from reassign.kube.login import Login
from reassign.text import cut

DEFAULT = "~/.kube/config"
LINE_CHARACTERS = 200
_EXIT = re.compile(r"exec: process returned (-?\d+)(?:\. (b['\"].*))?", re.DOTALL)
_NOT_JSON = "exec: failed to decode"
_SECRET = re.compile(
    r"(?P<before>(?:token|secret|passw(?:or)?d|key)[\"']?\s*[:=]\s*[\"']?|--[\w-]{0,40}(?:token|secret|password|key)\s+"
    r"|\b(?:bearer|basic)\s+)?"
    r"(?(before)\S+|[A-Za-z0-9_+=~-]{24,})",
    re.IGNORECASE,
)
"""What may be a token: a long word, or what follows its name."""
_USER = re.compile(r"(?<![^\s/'\"])[^\s/'\"]*@")
"""The user and the password of a URL."""


class UnusableError(Exception):
    """What of a kubeconfig cannot be used."""


def paths(login: Login) -> list[str]:
    """Return the files of a login; entries of KUBECONFIG that are empty are none, as for kubectl."""
    return [path for path in (_named(login) or DEFAULT).split(os.pathsep) if path]


def _named(login: Login) -> str | None:
    return login.kubeconfig or os.environ.get("KUBECONFIG")  # the library reads it only when it is imported


def is_named(login: Login) -> bool:
    """Whether a login, or the environment, has a kubeconfig or a context."""
    return bool(_named(login)) or login.context is not None


async def configure(configuration: Configuration, login: Login) -> None:
    """Set the server and the credentials of a kubeconfig. The library raises anything for what is none."""
    if not paths(login):
        raise UnusableError("KUBECONFIG names no file")
    with _refusals() as refusals:
        loader: Any = await load_kube_config(  # type: ignore[no-untyped-call]
            os.pathsep.join(paths(login)), login.context, configuration
        )
    if refusals:
        raise UnusableError(f"its credential plugin {loader._user['exec'].safe_get('command')}: {refusals[0]}")
    name = configuration.tls_server_name
    if not isinstance(name, str | None):
        raise UnusableError(f"its tls-server-name is {name!r}, no text")
    for field, url in (("server", configuration.host), ("proxy-url", configuration.proxy)):
        if url is not None and not _is_url(url):
            shown = cut(_USER.sub("…@", repr(url)), LINE_CHARACTERS)
            raise UnusableError(f"its {field} is {shown}, no URL such as https://host:6443")


@contextmanager
def _refusals() -> Iterator[list[str]]:
    """Collect why a credential plugin gives no credentials: the library logs that, and goes on without any."""
    found: list[str] = []

    def collect(record: logging.LogRecord) -> bool:
        if record.levelno < logging.ERROR:
            return True
        found.append(_refusal(record.getMessage(), sys.exception()))
        return False

    logger = logging.getLogger(kube_config.__name__)
    logger.addFilter(collect)
    try:
        yield found
    finally:
        logger.removeFilter(collect)


def _refusal(message: str, error: BaseException | None) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if ended := _EXIT.fullmatch(message):
        printed = ast.literal_eval(ended[2] or "b''").decode(errors="replace").strip().partition("\n")[0]
        shown = _SECRET.sub(lambda found: f"{found['before'] or ''}…", _USER.sub("…@", printed))
        first = cut(shown, LINE_CHARACTERS)
        return f"it ended with exit code {ended[1]}{': ' * bool(first)}{first}"
    if message.startswith(_NOT_JSON):
        return "what it prints is not JSON"
    return message.removeprefix("exec: ") if message.startswith("exec: ") else type(error).__name__


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not re.search(r"\s", text)
        )
    except ValueError:
        return False


def why_unusable(error: Exception, configuration: Configuration, login: Login | None) -> str:
    """Return what is wrong with the kubeconfig, or with a file or field of it; None: what a pod has is used."""
    if isinstance(error, UnusableError):
        return str(error)
    kubeconfigs = paths(login) if login else []
    named = {
        (f"{field}-data" if file in kube_config._temp_files.values() else file): file
        for field, file in (
            ("certificate-authority", configuration.ssl_ca_cert),
            ("client-certificate", configuration.cert_file),
            ("client-key", configuration.key_file),
        )
        if file
    }
    for name, file in [*((each, each) for each in kubeconfigs), *named.items()]:
        try:
            Path(file).expanduser().open("rb").close()
        except OSError as unreadable:
            if isinstance(unreadable, FileNotFoundError) and len(kubeconfigs) > 1:
                continue  # as kubectl does
            return f"{name}: {unreadable.strerror}"
    if isinstance(error, SSLError):
        return f"{', '.join(named)}: no certificate, or no key of it, in PEM"
    if isinstance(error, Base64Error):
        return "what a field that ends in -data has is not base64"
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, TypeError | AttributeError | KeyError | YAMLError | UnicodeDecodeError):
        return f"{os.pathsep.join(kubeconfigs)} is no kubeconfig"
    return _without_content(str(error).partition("\n")[0]) or type(error).__name__


def _without_content(message: str) -> str:
    """Return a message of the library without the fields of the kubeconfig that it repeats, some of them secret."""
    if missing := re.fullmatch(r"Invalid kube-config file\. Expected key (\S+) in .*", message):
        return f"it has no {missing[1]} where one is expected"
    if missing := re.fullmatch(r"File does not exists: (.*)", message):
        return f"{missing[1]}: No such file or directory"
    return re.sub(r"\{.*\}", "…", message)

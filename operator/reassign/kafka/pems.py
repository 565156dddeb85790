"""Certificates and keys as Secrets hold them, PEM, in the terms of Python's ssl. Private keys are in no file.

A ClusterError (InvalidSecret) says which part is unusable, and quotes nothing of it.
"""

from __future__ import annotations

import os
import ssl

from reassign.errors import ClusterError, Reason


def trusting(ca_pem: str | None, name: str) -> ssl.SSLContext:
    """Return a client's context that trusts these authorities, or the system's (None); an error calls them `name`."""
    try:
        if ca_pem == "":
            raise ValueError  # ssl would take it for none, and trust the system's
        # ssl takes ASCII only; what is not stands in comments, or is no PEM anyway
        return ssl.create_default_context(cadata=ca_pem and ca_pem.encode("ascii", "replace").decode())
    except (ssl.SSLError, ValueError) as error:
        raise _invalid(f"{name} is no PEM certificate", error) from None


def load_client_certificate(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # ssl takes a path only: this one names memory, so that the key is in no file and no writable disk is needed
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(f"{certificate}\n{key}\n")
        # without a password of ours, ssl would ask for one on the terminal
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=lambda: b"")
    except (ssl.SSLError, ValueError) as error:
        message = "the client certificate and its private key (without a password) are no matching PEM pair"
        raise _invalid(message, error) from None
    finally:
        os.close(descriptor)


def _invalid(message: str, error: Exception) -> ClusterError:
    detail = getattr(error, "reason", None) or "not in PEM form"  # OpenSSL's word for it, which quotes no content
    return ClusterError(Reason.INVALID_SECRET, f"{message} ({detail})")

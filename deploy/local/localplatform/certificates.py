"""A private certificate authority for the brokers' TLS listeners, made with the openssl command; files are PEM.

Keys are readable by their owner only. Nothing is renewed: a platform is made again before these expire.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from localplatform.processes import run

DAYS = 825
IDENTIFIER = "subjectKeyIdentifier=hash"
AUTHORITY = [IDENTIFIER, "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"]
LEAF = [
    IDENTIFIER,
    "authorityKeyIdentifier=keyid",
    "basicConstraints=critical,CA:FALSE",
    "keyUsage=critical,digitalSignature",
]


def make_authority(directory: Path, name: str = "local") -> Path:
    """Make ca.key and ca.crt in the directory; return the certificate's path."""
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return _certificate(directory, "ca", f"{name} authority", AUTHORITY, [])


def issue(directory: Path, name: str, *, addresses: Sequence[str] = ()) -> Path:
    """Make NAME.key and NAME.crt, signed by the directory's authority, and NAME.pem with both.

    With IP addresses it is a server's certificate for these and localhost, without a client's.
    """
    names = ",".join(["DNS:localhost", *(f"IP:{address}" for address in addresses)])
    extensions = [*LEAF, f"extendedKeyUsage={'serverAuth' if addresses else 'clientAuth'}"]
    if addresses:
        extensions.append(f"subjectAltName={names}")
    signer: list[str | Path] = ["-CA", directory / "ca.crt", "-CAkey", directory / "ca.key"]
    certificate = _certificate(directory, name, name, extensions, signer)
    both = (directory / f"{name}.key").read_text() + certificate.read_text()
    write_private(directory / f"{name}.pem", both)
    return certificate


def write_private(path: Path, content: str) -> None:
    """Write a file that only its owner can read, at any moment."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(content)


def _certificate(
    directory: Path, name: str, subject: str, extensions: Sequence[str], signer: Sequence[str | Path]
) -> Path:
    key, certificate = directory / f"{name}.key", directory / f"{name}.crt"
    # PKCS 8, the only form that the brokers read
    write_private(key, run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]))
    # no default extensions: a self-made section would repeat some of ours
    command: list[str | Path] = ["openssl", "req", "-x509", "-new", "-config", "/dev/null", "-key", key]
    command += ["-out", certificate, "-subj", f"/CN={subject}", "-days", str(DAYS), *signer]
    command += [part for extension in extensions for part in ("-addext", extension)]
    run(command)
    return certificate

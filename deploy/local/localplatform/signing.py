"""A key that signs access tokens for the brokers' OAUTHBEARER listener, made with the openssl command.

The brokers trust what is in jwks.json (RFC 7517); whoever has token.key makes tokens (RFC 7519) that they take.
"""

import json
import subprocess
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from localplatform.certificates import write_private
from localplatform.processes import run

ISSUER, AUDIENCE = "https://tokens.local", "kafka"
_KEY_ID = "local"


def make_signing_key(directory: Path) -> Path:
    """Make token.key and jwks.json in the directory; return the latter's path."""
    key, public = directory / "token.key", directory / "jwks.json"
    write_private(key, run(["openssl", "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]))
    modulus = run(["openssl", "rsa", "-in", key, "-noout", "-modulus"]).partition("=")[2].strip()
    numbers = {"n": _base64(bytes.fromhex(modulus)), "e": _base64(b"\x01\x00\x01")}
    public.write_text(json.dumps({"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": _KEY_ID, **numbers}]}))
    return public


def signed(directory: Path, claims: dict[str, Any]) -> str:
    """A token with these claims, signed with the directory's token.key."""
    header = {"alg": "RS256", "typ": "JWT", "kid": _KEY_ID}
    content = ".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
    sign = ["openssl", "dgst", "-sha256", "-sign", str(directory / "token.key")]
    signature = subprocess.run(sign, input=content.encode(), capture_output=True, check=True).stdout
    return f"{content}.{_base64(signature)}"


def _base64(content: bytes) -> str:
    return urlsafe_b64encode(content).rstrip(b"=").decode()

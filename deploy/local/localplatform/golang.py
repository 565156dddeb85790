"""Go: runs its command in the folder of a module that pins what is built."""

import os
import shutil
import subprocess
from pathlib import Path

from localplatform.console import PlatformError

ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "auto", "GOFLAGS": "-mod=readonly -buildvcs=false"}


def go(module: Path, *arguments: str) -> str:
    """What the command prints; a failure is an error that quotes its end."""
    if not shutil.which("go"):
        raise PlatformError("Go is needed to build from source: apt-get install golang-go")
    finished = subprocess.run(
        ["go", *arguments], cwd=module, capture_output=True, text=True, env={**os.environ, **ENVIRONMENT}
    )
    if finished.returncode:
        raise PlatformError(f"go {arguments[0]} in {module.name} failed:\n{finished.stderr[-4000:]}")
    return finished.stdout.strip()

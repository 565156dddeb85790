"""Runs the scripts that Argo CD is given, as it runs them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import lupa.lua51 as lua  # as in Argo CD's interpreter

from localplatform.argocd_config import CUSTOMIZATIONS


def script(kind: str, name: str, obj: Any) -> Any:
    """What a script of a kind returns for an object."""
    runtime = lua.LuaRuntime()
    runtime.globals().obj = runtime.table_from(deepcopy(obj), recursive=True)
    return runtime.execute((CUSTOMIZATIONS / kind / name).read_text())


def health(kind: str, obj: Any) -> tuple[str, str]:
    """Status and message of an object."""
    found = script(kind, "health.lua", obj)
    return str(found["status"]), str(found["message"])

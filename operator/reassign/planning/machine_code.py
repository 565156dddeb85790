"""The planner's machine code: how functions are compiled, and where numba keeps the result.

It is kept in a folder whose name is a hash of all sources of the rooms below, so an edit starts a new folder. By itself
numba would compare only the file of a function, and go on with what it inlined from others.

An image keeps code for any CPU of its architecture (`compile_ahead`, NUMBA_CPU_NAME=generic). The planner compares
whole numbers and jumps, so instructions of newer CPUs make it no faster, and every node plans the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import njit
from numba.core.caching import UserProvidedCacheLocator

from reassign.caches import kept, of_user

SETTINGS: Any = numba.config

ROOMS = ("problem", "kernel", "bounds", "waves")
"""The packages with compiled functions. They import nothing else of `planning`; import-linter holds that."""

KEPT = "REASSIGN_COMPILED"
"""The environment variable for a folder with machine code that an image keeps; it may be read-only."""

NAME = "reassign-machine-code"
BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
"""No entry from Python, which takes long to compile, and no reference counting, so that no arrays can be made.
Otherwise numba counts, with locks, each use of one of the state's arrays: ten times what most uses take."""

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Return a decorator that makes a function machine code that is kept, with these options of numba's `njit`."""

    def decorate(function: Function) -> Function:
        others = SETTINGS.CACHE_LOCATOR_CLASSES
        SETTINGS.CACHE_LOCATOR_CLASSES = f"{__name__}.{Locator.__name__}"  # numba asks for it right here
        try:
            return cast(Function, njit(cache=True, **options)(function))
        finally:
            SETTINGS.CACHE_LOCATOR_CLASSES = others

    return decorate


def entry(function: Function) -> Function:
    """Compile a function that Python calls. It runs without Python's lock, so that other threads go on."""
    return compiled(nogil=True, error_model="numpy")(function)


def inner(function: Function) -> Function:
    """Compile a function that only compiled code calls, and that makes no arrays."""
    return compiled(nogil=True, error_model="numpy", **BARE)(function)


def inlined(function: Function) -> Function:
    """Compile a function that is called millions of times: passing the state would take longer than the function
    itself."""
    return compiled(nogil=True, error_model="numpy", forceinline=True, **BARE)(function)


class Locator(UserProvidedCacheLocator):
    """Tells numba where a function's machine code is, whichever folder this package lies in."""

    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._disambiguator = f"{Path(py_file).parent.name}-{py_func.__code__.co_firstlineno}"

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Locator:
        return cls(py_func, py_file)

    def ensure_cache_path(self) -> None:
        folder().mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(folder())

    def get_source_stamp(self) -> str:
        return key()

    def get_disambiguator(self) -> str:
        return self._disambiguator


@cache
def key() -> str:
    """Return a hash of all that decides the machine code: the sources, and the versions of numba and numpy."""
    here = resources.files(__package__)
    parts = [numba.__version__.encode(), np.__version__.encode(), here.joinpath("machine_code.py").read_bytes()]
    for room in ROOMS:
        for file in sorted(here.joinpath(room).iterdir(), key=lambda file: file.name):
            if file.name.endswith(".py"):
                parts += f"{room}/{file.name}".encode(), file.read_bytes()
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:16]


@cache
def folder() -> Path:
    """Return the writable folder of this key: in NUMBA_CACHE_DIR, else in the user's cache, else one for this process.

    What an image keeps of the same key is linked into it, since numba writes beside what it reads.
    """
    place = kept(_roots(), NAME, key()) or Path(_temporary().name)
    if image := os.environ.get(KEPT):
        for file in sorted(Path(image, NAME, key()).glob("*.nb[ci]")):
            with suppress(FileExistsError):
                (place / file.name).symlink_to(file)
    return place


def _roots() -> Iterator[Path]:
    if SETTINGS.CACHE_DIR:
        yield Path(SETTINGS.CACHE_DIR)
    yield from of_user()


@cache
def _temporary() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix=f"{NAME}-")

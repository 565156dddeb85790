"""What `make check` asks of names and docstrings: prints the share of each package and each fault, fails on a fault.

Within core, planning and api each public type has a name of its own. In each package nine of ten functions' docstrings
say first what the function does or returns: they do not begin with an article or a question. Properties name the
thing, so they do not count.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1] / "operator" / "reassign"
TOGETHER = ("core", "planning", "api")
TWICE: Mapping[str, str] = {}
"""Names of types that are defined more than once, each with the reason."""
NO_VERBS = frozenset(["The", "A", "An", "What", "Why", "How", "Who", "Of", "No", "From", "In", "When", "Which", "Each"])
LEAST = 0.9

Function = ast.FunctionDef | ast.AsyncFunctionDef


def faults(root: Path = ROOT) -> list[str]:
    """Return what is wrong, each as a sentence."""
    found = [
        f"{name} is a type in {' and in '.join(files)}: give one of them another name"
        for name, files in types_of(root).items()
        if len(files) > 1 and name not in TWICE
    ]
    return found + [
        f"{package}: only {share:.0%} of the functions' docstrings say first what is done or returned"
        for package, share in shares(root).items()
        if share < LEAST
    ]


def types_of(root: Path) -> dict[str, list[str]]:
    """Return the files that define each public type: classes, and aliases at the top of a module."""
    found = defaultdict(list)
    for package in TOGETHER:
        for file in sorted((root / package).rglob("*.py")):
            for name in _types(ast.parse(file.read_text())):
                found[name].append(str(file.relative_to(root)))
    return dict(sorted(found.items()))


def _types(module: ast.Module) -> Iterator[str]:
    for node in module.body:
        match node:
            case ast.ClassDef(name=name):
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.isupper():
                    continue
            case _:
                continue
        if name[0].isupper():
            yield name


def shares(root: Path) -> dict[str, float]:
    """Return the share of each package's docstrings that begin well; the modules beside them are `reassign`."""
    good, all_of = Counter[str](), Counter[str]()
    for file in sorted(root.rglob("*.py")):
        package = file.relative_to(root).parts[0] if file.parent != root else root.name
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, Function) and not _names_a_thing(node) and (text := ast.get_docstring(node)):
                all_of[package] += 1
                good[package] += text.split()[0] not in NO_VERBS
    return {package: good[package] / number for package, number in sorted(all_of.items())}


def _names_a_thing(function: Function) -> bool:
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    dunder = function.name.startswith("__")
    return dunder or not decorators.isdisjoint({"property", "cached_property", "overload"})


if __name__ == "__main__":
    for package, share in shares(ROOT).items():
        print(f"{share:4.0%}  {package}")
    sys.exit("\n".join(faults()) or None)

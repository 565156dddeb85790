"""What holds of all tests: their names, and that each file can be read and run without another."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FILES = {
    str(path.relative_to(Path(__file__).parents[1])): path for path in Path(__file__).parents[1].rglob("test_*.py")
}


@pytest.mark.parametrize("file", sorted(FILES))
def test_a_file_of_tests_imports_no_other_and_names_are_short(file: str) -> None:
    nodes = [*ast.walk(ast.parse(FILES[file].read_text()))]
    modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    assert [module for module in modules if module.rpartition(".")[2].startswith("test_")] == []
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef)]
    assert [name for name in names if name.startswith("test_") and len(name) >= 70] == []

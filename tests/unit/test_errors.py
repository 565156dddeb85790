"""The tree of errors is the one that its module draws."""

from __future__ import annotations

import re

from reassign import errors


def test_the_docstring_draws_every_error_of_the_module() -> None:
    drawn = re.findall(r"^[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE)
    children = [child for child in errors.ReassignError.__subclasses__() if child.__module__ == errors.__name__]
    assert drawn == [child.__name__ for child in children]
    assert all(not child.__subclasses__() for child in children)

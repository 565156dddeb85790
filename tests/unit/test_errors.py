"""The tree of errors is the one that its module draws."""

from __future__ import annotations

import re

from reassign import errors


def test_the_docstring_draws_every_error_of_the_module() -> None:
    drawn = re.findall(r"^[├└]── (\w+)", errors.__doc__ or "", re.MULTILINE)
    assert drawn == [
        kind.__name__ for kind in vars(errors).values() if errors.ReassignError in getattr(kind, "__bases__", ())
    ]

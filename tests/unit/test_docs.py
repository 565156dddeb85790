"""What the docs say of the tests."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_behaviour_names_a_test_that_there_is() -> None:
    rows = re.findall(r"^\| .+ \| (`.+) \|$", (ROOT / "docs" / "behaviour.md").read_text(), re.MULTILINE)
    assert len(rows) > 50
    for row in rows:
        file = ""
        for named, test in re.findall(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`", row):
            file = named or file
            text = (ROOT / file).read_text()
            assert not test or re.search(rf"^(def {test}\(|{test} = )", text, re.MULTILINE), f"{file} has no {test}"

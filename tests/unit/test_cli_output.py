"""What the command line shows, and where."""

from __future__ import annotations

import pytest

from reassign.cli.output import progress


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only_and_never_on_stdout(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1" if terminal else "0")
    with progress("looking", "planning") as next_step:
        next_step()
    said = capsys.readouterr()
    assert said.out == ""
    assert ("planning" in said.err) is terminal

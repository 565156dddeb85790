"""The operator's process, from its start to its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from reassign.controller import process


@pytest.mark.parametrize("kubeconfig", [None, "{", "contexts: 5"], ids=["missing", "no YAML", "no kubeconfig"])
def test_without_a_kubeconfig_it_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kubeconfig: str | None
) -> None:
    path = tmp_path / "config"
    if kubeconfig:
        path.write_text(kubeconfig)
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setattr(process, "set_up_logs", lambda _: None)
    with pytest.raises(SystemExit, match=r"the kubeconfig cannot be used .* name one with --kubeconfig"):
        process.main()

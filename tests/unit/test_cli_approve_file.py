"""`approve --file`: one line of a manifest is changed, and every other byte of the file stays."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from reassign.errors import PlanningError
from reassign.manifests.approval import Named, write_approval
from reassign.manifests.text import load
from tests.unit.cli import ROOT, Live, Ran, error_of, run, sim
from tests.unit.verbs import DIGEST, OTHER, Object, decommission, made_by, plan, policy

NAMED = Named("ReassignmentPlan", "kafka", "drain-5")
HEAD = "apiVersion: kafka.reassign.dev/v1alpha1\nkind: ReassignmentPlan\nmetadata:\n  name: drain-5\n"
OTHERS = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: drain-5\n---\n"
    f"{HEAD.replace('drain-5', 'drain-6')}spec:\n  a: 1\n"
)
FILE = Path("plan.yaml")


def written(text: str, named: Named = NAMED) -> str:
    return write_approval(text, FILE, named, DIGEST).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spec:\n  approvedDigest: sha256:1 # who\n  a: 1\n", f"spec:\n  approvedDigest: {DIGEST} # who\n  a: 1\n"),
        ("spec:\n  a: 1\n  approvedDigest: 'x'", f"spec:\n  a: 1\n  approvedDigest: '{DIGEST}'"),
        ('spec:\n  "approvedDigest":   "x"  \n', f'spec:\n  "approvedDigest":   "{DIGEST}"  \n'),
        ("spec:\n  approvedDigest:\n  a: 1\n", f"spec:\n  approvedDigest: {DIGEST}\n  a: 1\n"),
        ("spec:\n  approvedDigest: # none\n", f"spec:\n  approvedDigest: {DIGEST} # none\n"),
        ("spec:\n  approvedDigest: null\n", f"spec:\n  approvedDigest: {DIGEST}\n"),
        ("spec:\n  a: 1\n", f"spec:\n  approvedDigest: {DIGEST}\n  a: 1\n"),
        ("spec: # s\n\n    # of a\n    a: 1", f"spec: # s\n    approvedDigest: {DIGEST}\n\n    # of a\n    a: 1"),
        (
            "spec:\n  a: |\n    approvedDigest: x\n",
            f"spec:\n  approvedDigest: {DIGEST}\n  a: |\n    approvedDigest: x\n",
        ),
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("around", [("", ""), (f"\ufeff# ü 😀\n---\n---\n{OTHERS}---\n", f"---\n{OTHERS}...\n# end")])
def test_one_line_is_changed_or_added_and_no_other_byte(
    before: str, after: str, ending: str, around: tuple[str, str]
) -> None:
    first, last = around
    if last and not before.endswith("\n"):
        before, after = before + "\n", after + "\n"
    old, new = (f"{first}{HEAD}{spec}{last}".replace("\n", ending) for spec in (before, after))
    assert written(old) == new
    assert written(new) == new


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}spec:\n  a: {{{{ .Values.a }}}}\n", "plan.yaml is a template ({{), and no manifest"),
        (f"{{{{- if .a }}}}\n{HEAD}spec:\n  a: 1\n", "is a template"),
        ('{"kind": "ReassignmentPlan"}', "plan.yaml is JSON, and only YAML is changed"),
        ("a: [", "plan.yaml cannot be read: it is neither JSON nor YAML at line"),
        ("", "plan.yaml has no ReassignmentPlan drain-5 of namespace kafka; name the file that has it"),
        (OTHERS, "plan.yaml has no ReassignmentPlan drain-5 of namespace kafka"),
        (f"{HEAD}  namespace: else\nspec:\n  a: 1\n", "kafka; it has one of namespace else; name the file"),
        (
            f"{HEAD}spec:\n  a: 1\n---\n{HEAD}spec:\n  a: 1\n",
            "has the ReassignmentPlan drain-5 more than once; keep one",
        ),
        (HEAD, "it has no spec; set spec.approvedDigest by hand"),
        (f"{HEAD}spec:\n", "its spec has no fields"),
        (f"{HEAD}spec: {{a: 1}}\n", "it is written with braces"),
        (f"{HEAD}spec: &s\n  a: 1\nother: *s\n", "spec has an anchor, an alias or a tag"),
        (f"s: &s\n  a: 1\n{HEAD}spec: *s\n", "spec has an anchor, an alias or a tag"),
        (f"{HEAD}spec:\n  approvedDigest: &d x\n  a: *d\n", "approvedDigest has an anchor, an alias or a tag"),
        (f"{HEAD}spec:\n  a: &d x\n  approvedDigest: *d\n", "approvedDigest has an anchor, an alias or a tag"),
        (f"{HEAD}spec:\n  a: 1\n  &k approvedDigest: x\n", "approvedDigest has an anchor, an alias or a tag"),
        (f"s: &s\n  approvedDigest: x\n{HEAD}spec:\n  <<: *s\n  a: 1\n", "approvedDigest comes from an anchor"),
        (f"{HEAD}spec:\n  approvedDigest: x\n  approvedDigest: x\n", "approvedDigest is repeated at line 7, column 3"),
        (f"{HEAD}spec:\n  approvedDigest: >-\n    x\n", "approvedDigest is not one text in one line"),
        (f"{HEAD}spec:\n  approvedDigest:\n    x\n", "approvedDigest is not one text in one line"),
        (f"{HEAD}spec:\n  approvedDigest: [x]\n", "approvedDigest is not one text in one line"),
        (f"{HEAD}? spec\n: a: 1\n", "its spec does not have a field a line"),
    ],
)
def test_what_cannot_be_changed_in_one_line_is_refused(text: str, said: str) -> None:
    with pytest.raises(PlanningError) as caught:
        written(text)
    assert said in caught.value.message


def test_the_kind_and_the_namespace_choose_the_document() -> None:
    other = HEAD.replace("ReassignmentPlan", "BrokerDecommission")
    text = (
        f"{HEAD}spec:\n  a: 1\n---\n{other}  namespace: kafka\nspec:\n  a: 1\n---\n{other}  namespace: x\nspec: {{}}\n"
    )
    for kind, number in (("ReassignmentPlan", 0), ("BrokerDecommission", 1)):
        documents = load(written(text, Named(kind, "kafka", "drain-5")))
        assert [document["spec"].get("approvedDigest") for document in documents].index(DIGEST) == number


# --- the command ---


def manifest(folder: Path, kind: str = "ReassignmentPlan", name: str = "drain-5") -> Path:
    file = folder / "plan.yaml"
    text = HEAD.replace("ReassignmentPlan", kind).replace("drain-5", name)
    file.write_bytes(f"{text}spec:\r\n  approvedDigest: {OTHER}\r\n  a: 1".encode())
    return file


def approve(monkeypatch: pytest.MonkeyPatch, obj: Object, *arguments: object, stdin: str | None = None) -> Ran:
    Live(sim(), obj).serve(monkeypatch)  # which writes nothing
    return run("approve", obj["metadata"]["name"], "-n", "kafka", *arguments, stdin=stdin)


@pytest.mark.parametrize("obj", [plan(), decommission(), policy()], ids=["plan", "decommission", "policy"])
def test_approve_writes_the_file_and_nothing_else(obj: Object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, digest = obj["metadata"]["name"], obj["status"]["digest"]
    file = manifest(tmp_path, obj["kind"], name)
    before, _ = file.read_bytes(), file.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    assert approve(monkeypatch, obj, "--file", link, stdin="n\n").code == 1
    assert file.read_bytes() == before
    assert approve(monkeypatch, obj, "--file", link, "--dry-run").out.splitlines()[-2].endswith("(dry run)")
    assert file.read_bytes() == before
    ran = approve(monkeypatch, obj, "--file", link, stdin="y\n")
    short = {"ReassignmentPlan": "krp", "BrokerDecommission": "kbd", "ReassignmentPolicy": "krpol"}[obj["kind"]]
    assert (ran.code, ran.err) == (0, f"Approve {short}/{name} in {link}? [y/N] ")
    assert ran.out.splitlines()[-2:] == [
        f"{link}, line 6: approvedDigest of {short}/{name}: {OTHER} → {digest}",
        "commit the file: nothing was written to the API server",
    ]
    assert file.read_bytes() == before.replace(OTHER.encode(), digest.encode())
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, file]
    again = approve(monkeypatch, obj, "--file", link)
    assert again == (0, f"{link} approves {short}/{name} already, {digest}\n", "")


def test_a_digest_that_was_read_goes_to_the_file_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = manifest(tmp_path)
    assert "not sha256:0b" in error_of(approve(monkeypatch, plan(), "-f", file, "--digest", OTHER), 1)
    assert approve(monkeypatch, plan(), "-f", file, "--digest", DIGEST).out.startswith(f"{file}, line 6: ")
    assert DIGEST in file.read_text()


def test_the_page_shows_what_is_written_to_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "drain-5.yaml").write_text(f"{HEAD}spec:\n  a: 1\n")
    said = approve(monkeypatch, plan(), "--file", "plans/drain-5.yaml", "--yes").out
    assert said in (ROOT / "docs" / "reference" / "command-line.md").read_text()


def test_what_is_approved_live_is_written_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    approved = plan()
    approved["spec"]["approvedDigest"] = DIGEST
    file = manifest(tmp_path)
    assert approve(monkeypatch, approved, "-f", file, "--yes").code == 0
    assert DIGEST in file.read_text()
    free = plan()
    free["spec"]["approval"] = "NotRequired"
    said = "krp/drain-5 needs no approval: spec.approval is NotRequired\n"
    assert approve(monkeypatch, free, "-f", tmp_path / "none") == (0, said, "")


def test_a_plan_made_anew_during_the_answer_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, obj = manifest(tmp_path), plan()
    before = file.read_bytes()
    monkeypatch.setattr("reassign.cli.output.confirm", lambda *_: obj["status"].update(digest=OTHER))
    ran = approve(monkeypatch, obj, "-f", file)
    assert (ran.code, f"is {OTHER}, not {DIGEST}" in ran.err) == (1, True)
    assert file.read_bytes() == before


def test_files_that_cannot_be_changed_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    utf16 = tmp_path / "utf16.yaml"
    utf16.write_text("a: 1", encoding="utf-16")
    for file, said in (
        (tmp_path / "none.yaml", "none.yaml cannot be used: No such file or directory (CannotBeRead)"),
        (tmp_path, "is no file; name the file that has the manifest (CannotBeRead)"),
        (utf16, "is not text in UTF-8; save it as UTF-8 (CannotBeRead)"),
    ):
        assert said in error_of(approve(monkeypatch, plan(), "-f", file), 2)
    ran = approve(monkeypatch, plan(), "-f", "-")
    assert (ran.code, "- is standard input, which cannot be changed: name the file" in ran.err) == (2, True)
    owned = made_by(decommission())
    assert "approve the BrokerDecommission decommission-5" in error_of(approve(monkeypatch, owned, "-f", tmp_path), 2)


def test_a_file_that_cannot_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = manifest(tmp_path)
    before = file.read_bytes()

    def fail(*_: object) -> None:
        raise PermissionError(13, "Permission denied", str(file))

    monkeypatch.setattr(Path, "replace", fail)
    ran = approve(monkeypatch, plan(), "-f", file, "--digest", DIGEST)
    assert "cannot be written: Permission denied" in error_of(ran, 4)
    assert file.read_bytes() == before
    assert [*tmp_path.iterdir()] == [file]

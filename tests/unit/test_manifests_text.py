"""YAML is read as Go's reader does, and what is written is read as the same text by that and by others."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reassign.manifests.text import dump, load, plain
from tests.unit.examples import examples
from tests.unit.scalars import SCALARS, UNHOLDABLE

texts = (
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.text("0179_.eExXoObB+-:~yYnN aF", max_size=8)
    | st.sampled_from([*SCALARS, *UNHOLDABLE, "", " ", "a: b", "a #b", "- a", "two words", "'", '"', "---", "a\n"])
)
values = st.recursive(texts | st.integers() | st.booleans() | st.none(), lambda inner: st.lists(inner, max_size=3))


@pytest.mark.parametrize("text", SCALARS)
def test_a_scalar_is_what_go_takes_it_for(text: str) -> None:
    expected = SCALARS[text]
    for found in (plain(text), load(f"a: {text}")[0]["a"], load(f"- {{a: {text}}}")[0][0]["a"]):
        assert found == expected
        assert isinstance(found, bool) == isinstance(expected, bool)
        assert isinstance(found, str) == isinstance(expected, str)
        assert isinstance(found, float) == isinstance(expected, float)


@pytest.mark.parametrize("text", SCALARS)
def test_a_scalar_in_quotes_is_text(text: str) -> None:
    for written in (f"'{text}'", f'"{text}"', f"!!str {text}"):
        assert load(f"a: {written}") == [{"a": text}]


@pytest.mark.parametrize("text", UNHOLDABLE)
def test_a_number_that_json_cannot_hold_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no number that JSON can hold at line 2, column 4"):
        load(f"\na: {text}")


def test_the_names_of_fields_are_text() -> None:
    assert load("{1: a, on: b, 1e3: c, '<<': d}") == [{"1": "a", "true": "b", "1000": "c", "<<": "d"}]
    with pytest.raises(ValueError, match="a field has no name at line 1, column 1"):
        load("~: a")


def test_a_map_is_merged_into_another() -> None:
    assert load("a: &a {b: 1}\nc: {<<: *a, d: <<}") == [{"a": {"b": 1}, "c": {"b": 1, "d": "<<"}}]


@pytest.mark.parametrize(
    "text", ["!!int 5", "!!binary aGk=", "!!timestamp 2024-01-01", "!mine 5", "!mine {}", "!!set {a}"]
)
def test_a_tag_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a value has a tag, which nothing here needs at line 1, column 4"):
        load(f"a: {text}")


@examples(400)
@given(st.dictionaries(texts, values, max_size=4))
def test_what_is_written_is_read_as_it_was(document: dict[str, Any]) -> None:
    assert load(dump([document])) == ([document])


@examples(200)
@given(st.dictionaries(texts, texts, max_size=4))
def test_readers_of_older_yaml_read_the_same_text(document: dict[str, Any]) -> None:
    assert yaml.safe_load(dump([document])) == document


def test_only_what_is_plainly_words_has_no_quotes() -> None:
    quoted = [name for name in SCALARS if dump([{"a": name}]) != f"a: {name}\n"]
    assert set(SCALARS) - set(quoted) == {"orders", "a1", "nO", "_", "__", "_1", "infinity", "nan"}
    for words in ("drain-5-a6cb0b-1", "kafka.reassign.dev/v1alpha1", "/data/b", "two words", "__consumer_offsets"):
        assert dump([{"a": words}]) == f"a: {words}\n"

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandpiper.adapters.dynamodb_values import from_attribute, from_item, to_attribute, to_item

numbers = st.integers(-(10**30), 10**30) | st.floats(-1e100, 1e100, allow_nan=False).filter(lambda n: n != int(n))
scalars = st.none() | st.booleans() | st.text() | st.binary() | numbers
values = st.recursive(
    scalars | st.sets(st.text(), min_size=1),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(min_size=1), inner),
    max_leaves=10,
)


@given(values)
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    attribute: Any = to_attribute(value)
    assert from_attribute(attribute) == value


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        ("text", {"S": "text"}),
        (True, {"BOOL": True}),
        (7, {"N": "7"}),
        (0.25, {"N": "0.25"}),
        (Decimal("1.50"), {"N": "1.50"}),
        (None, {"NULL": True}),
        (b"\x00", {"B": b"\x00"}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        (frozenset({"a"}), {"SS": ["a"]}),
        (["a", 1], {"L": [{"S": "a"}, {"N": "1"}]}),
        (("a",), {"L": [{"S": "a"}]}),
        ({"k": {"n": 1}}, {"M": {"k": {"M": {"n": {"N": "1"}}}}}),
    ],
)
def test_each_kind_of_value_has_its_attribute_type(value: Any, attribute: Any) -> None:
    assert to_attribute(value) == attribute


def test_whole_numbers_come_back_as_int_and_others_as_float() -> None:
    assert from_item({"a": {"N": "2.0"}, "b": {"N": "2.5"}}) == {"a": 2, "b": 2.5}
    assert isinstance(from_attribute({"N": "2.0"}), int)


def test_a_row_has_no_attribute_for_none() -> None:
    assert to_item({"a": None, "b": ""}) == {"b": {"S": ""}}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), set(), {1}])
def test_a_value_that_dynamodb_refuses_is_refused_here(value: Any) -> None:
    with pytest.raises(ValueError, match="DynamoDB stores"):
        to_attribute(value)


def test_an_unknown_kind_of_value_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        to_attribute(object())
    with pytest.raises(TypeError, match="NS"):
        from_attribute({"NS": ["1"]})

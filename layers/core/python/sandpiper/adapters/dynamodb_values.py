"""Python values ⇄ DynamoDB's typed attributes. boto3 has this too, at the price of importing all of boto3."""

from __future__ import annotations

import math
from decimal import Decimal
from types import NoneType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef, UniversalAttributeValueTypeDef

    type Item = dict[str, UniversalAttributeValueTypeDef]


def to_item(values: Mapping[str, Any]) -> Item:
    """Attributes of a row; what is None is left out, as rows have no empty columns."""
    return {name: to_attribute(value) for name, value in values.items() if value is not None}


def from_item(item: Mapping[str, AttributeValueTypeDef]) -> dict[str, Any]:
    return {name: from_attribute(attribute) for name, attribute in item.items()}


def to_attribute(value: Any) -> UniversalAttributeValueTypeDef:
    for types, kind, convert in _KINDS:
        if isinstance(value, types):
            return cast("UniversalAttributeValueTypeDef", {kind: convert(value)})
    message = f"DynamoDB stores no {type(value).__name__}"
    raise TypeError(message)


def from_attribute(attribute: AttributeValueTypeDef) -> Any:
    """The plain value. A number comes back as int if it is whole, else as float."""
    ((kind, value),) = attribute.items()
    match kind, value:
        case "NULL", _:
            return None
        case (("S" | "BOOL" | "B"), _):
            return value
        case "N", str():
            return _parse_number(value)
        case "SS", list():
            return set(value)
        case "L", list():
            return [from_attribute(element) for element in value]
        case "M", dict():
            return from_item(value)
    message = f"unknown DynamoDB type {kind}"
    raise TypeError(message)


def _number(value: float | Decimal) -> str:
    if not math.isfinite(value):
        message = f"DynamoDB stores no {value}"
        raise ValueError(message)
    return str(value)


def _parse_number(text: str) -> int | float:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else float(number)


def _string_set(value: set[Any] | frozenset[Any]) -> list[str]:
    if not value or not all(isinstance(element, str) for element in value):
        message = "DynamoDB stores only sets of strings, and no empty ones"
        raise ValueError(message)
    return sorted(value)


def _list(value: list[Any] | tuple[Any, ...]) -> list[UniversalAttributeValueTypeDef]:
    return [to_attribute(element) for element in value]


def _map(value: dict[Any, Any]) -> Item:
    return {str(name): to_attribute(element) for name, element in value.items()}


# In this order: a bool is an int too.
_KINDS: tuple[tuple[type | tuple[type, ...], str, Callable[[Any], Any]], ...] = (
    (NoneType, "NULL", lambda _: True),
    (bool, "BOOL", bool),
    (str, "S", str),
    ((int, float, Decimal), "N", _number),
    (bytes, "B", bytes),
    ((set, frozenset), "SS", _string_set),
    ((list, tuple), "L", _list),
    (dict, "M", _map),
)

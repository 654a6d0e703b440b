"""The parts of a DynamoDB transaction, spelled once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sandpiper.adapters.dynamodb_values import to_item

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

_NAME = re.compile(r"#(\w+)")


def put_new(table: str, row: Mapping[str, Any], *, key: str = "pk") -> TransactWriteItemTypeDef:
    """Write a row that must not be there yet; `key` is the table's hash key."""
    return {
        "Put": {
            "TableName": table,
            "Item": to_item(row),
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": key},
        }
    }


def put(table: str, row: Mapping[str, Any]) -> TransactWriteItemTypeDef:
    return {"Put": {"TableName": table, "Item": to_item(row)}}


def require(table: str, key: Mapping[str, Any]) -> TransactWriteItemTypeDef:
    """Write nothing, but only if the row is there."""
    return {
        "ConditionCheck": {
            "TableName": table,
            "Key": to_item(key),
            "ConditionExpression": "attribute_exists(pk)",
        }
    }


def delete(table: str, key: Mapping[str, Any]) -> TransactWriteItemTypeDef:
    return {"Delete": {"TableName": table, "Key": to_item(key)}}


def update(
    table: str, key: Mapping[str, Any], *, changes: Mapping[str, Any], condition: str, values: Mapping[str, Any]
) -> TransactWriteItemTypeDef:
    """Set attributes (None removes one) if `condition` holds. It names attributes as #name, and `values` as :name."""
    kept = {name: value for name, value in changes.items() if value is not None}
    removed = [f"#{name}" for name in changes if name not in kept]
    clauses = ["SET " + ", ".join(f"#{name} = :new_{name}" for name in kept)] if kept else []
    clauses += ["REMOVE " + ", ".join(removed)] if removed else []
    return {
        "Update": {
            "TableName": table,
            "Key": to_item(key),
            "UpdateExpression": " ".join(clauses),
            "ConditionExpression": condition,
            "ExpressionAttributeNames": {f"#{name}": name for name in (*changes, *_NAME.findall(condition))},
            "ExpressionAttributeValues": {
                **to_item({f":new_{name}": value for name, value in kept.items()}),
                **to_item({f":{name}": value for name, value in values.items()}),
            },
        }
    }

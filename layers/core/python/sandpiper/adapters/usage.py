"""What a user, and an organization as a whole, used in a month.

One row of each, which is added to in the transactions that change a run's usage.

The cost is added as a decimal of what the run says, so that the differences of one run add up to exactly its total.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sandpiper.adapters import keys
from sandpiper.adapters.dynamodb_values import to_item
from sandpiper.models.run import MonthlyUsage, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef, UpdateTypeDef

    from sandpiper.models.quota import Scope

    type Figures = dict[str, Decimal]

STARTED: Mapping[str, Decimal] = {"runs": Decimal(1)}


def difference(before: Usage, after: Usage) -> Figures:
    """What has been used since, without what has not changed."""
    names = Usage.model_fields
    each = {name: _decimal(getattr(after, name)) - _decimal(getattr(before, name)) for name in names}
    return {name: figure for name, figure in each.items() if figure}


def add(
    table: str, scope: Scope, moment: datetime, figures: Mapping[str, Decimal], *, spent_below: float | None = None
) -> TransactWriteItemTypeDef:
    """With `spent_below`: only as long as the month has cost less."""
    update: UpdateTypeDef = {
        "TableName": table,
        "Key": to_item(keys.usage_key(scope, keys.month_of(moment))),
        "UpdateExpression": "ADD " + ", ".join(f"#{name} :{name}" for name in figures),
        "ExpressionAttributeNames": {f"#{name}": name for name in figures},
        "ExpressionAttributeValues": to_item({f":{name}": figure for name, figure in figures.items()}),
    }
    if spent_below is None:
        return {"Update": update}
    condition = "attribute_not_exists(cost_usd) OR cost_usd < :spent_below"
    values = {**update["ExpressionAttributeValues"], **to_item({":spent_below": _decimal(spent_below)})}
    return {"Update": {**update, "ConditionExpression": condition, "ExpressionAttributeValues": values}}


def from_row(month: str, row: Mapping[str, Any]) -> MonthlyUsage:
    figures = {name: row[name] for name in ("runs", *Usage.model_fields) if name in row}
    return MonthlyUsage(month=month, **figures)


def _decimal(figure: float) -> Decimal:
    return Decimal(str(figure))

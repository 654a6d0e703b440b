"""Has the github function see to a run's status comment, without waiting for it."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

logger = logging.getLogger(__name__)


class LambdaAnnouncer:
    def __init__(self, functions: LambdaClient, *, function: str) -> None:
        self._functions, self._function = functions, function

    def tell(self, run_id: str) -> None:
        """Never fails: a comment that is out of date is no reason to stop a run."""
        payload = json.dumps({"action": "tell", "run_id": run_id}).encode()
        try:
            self._functions.invoke(FunctionName=self._function, InvocationType="Event", Payload=payload)
        except (BotoCoreError, ClientError):
            logger.exception("GitHub could not be told", extra={"run_id": run_id})

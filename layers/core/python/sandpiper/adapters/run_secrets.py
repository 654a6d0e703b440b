"""Secrets of one run: a row of the runs table that only KMS can read, and only for that run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sandpiper import limits
from sandpiper.adapters import keys
from sandpiper.adapters.dynamodb_values import from_item, to_item

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_kms import KMSClient

    from sandpiper.ports import Clock

_DAY_SECONDS = 24 * 60 * 60


class KmsRunSecrets:
    def __init__(
        self,
        dynamodb: DynamoDBClient,
        kms: KMSClient,
        *,
        runs_table: str,
        key_id: str,
        clock: Clock,
        retention_days: int = limits.RUN_DAYS,
    ) -> None:
        self._dynamodb = dynamodb
        self._kms = kms
        self._table = runs_table
        self._key_id = key_id
        self._clock = clock
        self._retention_days = retention_days

    def put(self, run_id: str, secrets: Mapping[str, str]) -> None:
        plaintext = json.dumps(dict(secrets)).encode()
        if len(plaintext) > limits.MAX_RUN_SECRETS_BYTES:
            message = f"{len(plaintext)} bytes of secrets; KMS encrypts {limits.MAX_RUN_SECRETS_BYTES}"
            raise ValueError(message)
        ciphertext = self._kms.encrypt(KeyId=self._key_id, Plaintext=plaintext, EncryptionContext={"run_id": run_id})
        expires_at = int(self._clock.now().timestamp()) + self._retention_days * _DAY_SECONDS
        row = {**_key(run_id), "ciphertext": ciphertext["CiphertextBlob"], "expires_at": expires_at}
        self._dynamodb.put_item(TableName=self._table, Item=to_item(row))

    def get(self, run_id: str) -> dict[str, str]:
        answer = self._dynamodb.get_item(TableName=self._table, Key=to_item(_key(run_id)), ConsistentRead=True)
        if "Item" not in answer:
            return {}
        plaintext = self._kms.decrypt(
            KeyId=self._key_id,
            CiphertextBlob=from_item(answer["Item"])["ciphertext"],
            EncryptionContext={"run_id": run_id},
        )["Plaintext"]
        secrets: dict[str, str] = json.loads(plaintext)
        return secrets

    def delete(self, run_id: str) -> None:
        self._dynamodb.delete_item(TableName=self._table, Key=to_item(_key(run_id)))


def _key(run_id: str) -> dict[str, str]:
    return {"pk": keys.run_pk(run_id), "sk": keys.SECRETS}

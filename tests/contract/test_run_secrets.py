from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from sandpiper.adapters.run_secrets import KmsRunSecrets
from sandpiper.testing.fakes import FakeClock, FakeRunSecrets
from tests.contract.samples import new_run_id

if TYPE_CHECKING:
    from sandpiper.ports import RunSecrets
    from tests.contract.worlds import Aws


@pytest.fixture(scope="session")
def kms_secrets(aws: Aws, dynamodb: Any) -> KmsRunSecrets:
    kms = aws.client("kms")
    key_id = kms.create_key()["KeyMetadata"]["KeyId"]
    return KmsRunSecrets(dynamodb, kms, runs_table=aws.runs_table, key_id=key_id, clock=FakeClock())


@pytest.fixture(params=["fake", "real"])
def secrets(request: pytest.FixtureRequest) -> RunSecrets:
    if request.param == "fake":
        return FakeRunSecrets()
    real: KmsRunSecrets = request.getfixturevalue("kms_secrets")
    return real


def test_secrets_are_read_back(secrets: RunSecrets, run_id: str) -> None:
    secrets.put(run_id, {"github_token": "ghs_" + "x" * 400})
    assert secrets.get(run_id) == {"github_token": "ghs_" + "x" * 400}


def test_a_run_without_secrets_has_none(secrets: RunSecrets, run_id: str) -> None:
    assert secrets.get(run_id) == {}


def test_deleted_secrets_are_gone_and_deleting_again_is_harmless(secrets: RunSecrets, run_id: str) -> None:
    secrets.put(run_id, {"github_token": "t"})
    secrets.delete(run_id)
    secrets.delete(run_id)
    assert secrets.get(run_id) == {}


def test_secrets_of_one_run_are_not_those_of_another(secrets: RunSecrets, run_id: str) -> None:
    secrets.put(run_id, {"github_token": "mine"})
    assert secrets.get(new_run_id()) == {}


def test_more_than_kms_takes_is_refused(secrets: RunSecrets, run_id: str) -> None:
    with pytest.raises(ValueError, match="bytes of secrets"):
        secrets.put(run_id, {"github_token": "x" * 5000})


def test_the_row_holds_no_plain_secret_and_serves_no_other_run(
    kms_secrets: KmsRunSecrets, aws: Aws, dynamodb: Any, run_id: str
) -> None:
    kms_secrets.put(run_id, {"github_token": "ghs_plain"})
    key = {"pk": {"S": f"RUN#{run_id}"}, "sk": {"S": "SECRETS"}}
    row = dynamodb.get_item(TableName=aws.runs_table, Key=key)["Item"]
    assert b"ghs_plain" not in row["ciphertext"]["B"]
    other = new_run_id()
    dynamodb.put_item(TableName=aws.runs_table, Item={**row, "pk": {"S": f"RUN#{other}"}})
    with pytest.raises(ClientError, match="InvalidCiphertext"):
        kms_secrets.get(other)


def test_the_inventory_names_the_runs_that_have_secrets(aws: Aws, kms_secrets: KmsRunSecrets, run_id: str) -> None:
    runs = aws.runs(FakeClock())
    kms_secrets.put(run_id, {"github_token": "x"})
    assert run_id in runs.inventory().secrets
    kms_secrets.delete(run_id)
    assert run_id not in runs.inventory().secrets

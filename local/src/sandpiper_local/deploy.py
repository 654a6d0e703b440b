"""The real template on the embedded AWS: create the stack from its bundle, fill in its secrets."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, WaiterError

from sandpiper_local.errors import DeployFailed
from sandpiper_local.template.bundle import BUCKET, TEMPLATE, objects

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sandpiper_local.aws import EmbeddedAws

STACK_NAME = "sandpiper"


@dataclass(frozen=True)
class Deployed:
    outputs: dict[str, str]
    websocket_stage: str


def deploy(aws: EmbeddedAws, bundle: Path, parameters: Mapping[str, str]) -> Deployed:
    _refuse_unknown(parameters, json.loads((bundle / TEMPLATE).read_text()))
    s3 = aws.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    for key, content in objects(bundle):
        s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    outputs = _create_stack(aws, f"{aws.endpoint}/{BUCKET}/{TEMPLATE}", parameters)
    stages = aws.client("apigatewayv2").get_stages(ApiId=outputs["WebSocketApiId"])["Items"]
    return Deployed(outputs, stages[0]["StageName"])


def _refuse_unknown(parameters: Mapping[str, str], template: Mapping[str, Any]) -> None:
    if unknown := sorted(parameters.keys() - template.get("Parameters", {}).keys()):
        raise DeployFailed(f"template.yaml has no parameter {', '.join(unknown)}")


def _create_stack(aws: EmbeddedAws, template_url: str, parameters: Mapping[str, str]) -> dict[str, str]:
    cloudformation = aws.client("cloudformation")
    try:
        cloudformation.create_stack(
            StackName=STACK_NAME,
            TemplateURL=template_url,
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        )
        waiter = cloudformation.get_waiter("stack_create_complete")
        waiter.wait(StackName=STACK_NAME, WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    except ClientError as error:
        raise DeployFailed(f"the embedded AWS refuses the template: {error.response['Error']['Message']}") from error
    except WaiterError as error:
        raise DeployFailed(f"the stack could not be created: {_failures(cloudformation)}") from error
    stack = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def _failures(cloudformation: Any) -> str:
    stack = cloudformation.describe_stacks(StackName=STACK_NAME)["Stacks"][0]
    events = cloudformation.describe_stack_events(StackName=STACK_NAME)["StackEvents"]
    failed = [event for event in events if event["ResourceStatus"].endswith("FAILED")]
    reasons = [f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}" for event in failed]
    return "; ".join([stack["StackStatus"], stack.get("StackStatusReason", ""), *reasons])


def put_secrets(
    aws: EmbeddedAws,
    outputs: Mapping[str, str],
    *,
    jwt_secret: str,
    model_key: str,
    github_key: str | None,
    webhook_secret: str | None,
) -> None:
    """What is None stays as the template made it."""
    values = {
        "JwtSecretArn": jwt_secret,
        "ModelKeySecretArn": model_key,
        "GitHubAppKeySecretArn": github_key,
        "GitHubWebhookSecretArn": webhook_secret,
    }
    secrets = aws.client("secretsmanager")
    for output, value in values.items():
        if value:
            secrets.put_secret_value(SecretId=outputs[output], SecretString=value)

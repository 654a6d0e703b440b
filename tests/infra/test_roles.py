"""What every role may do, said twice: here and in the template. A new permission is a change in both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.sources import ROLES, function, resources, template

if TYPE_CHECKING:
    from collections.abc import Iterator

Grants = dict[str, set[str]]

LOGS = {"logs:CreateLogStream", "logs:PutLogEvents"}

MAY: dict[str, Grants] = {
    "ApiRole": {
        "ApiLogs": LOGS,
        "RunsTable": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:Query",
        },
        "RunsTable/index/by_owner": {"dynamodb:Query"},
        "EventsTable": {"dynamodb:PutItem", "dynamodb:Query"},
        "ConnectionsTable": {"dynamodb:PutItem", "dynamodb:UpdateItem"},
        "IdempotencyTable": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem"},
        "ArtifactsBucket": {"s3:ListBucket"},
        "ArtifactsBucket/runs/*": {"s3:GetObject", "s3:PutObject"},
        "DataKey": {"kms:Encrypt"},
        "ModelKeySecret": {"secretsmanager:GetSecretValue"},
        "RunStateMachine": {"states:StartExecution"},
        "*": {"states:SendTaskSuccess"},
    },
    "AuthorizerRole": {
        "AuthorizerLogs": LOGS,
        "JwtSecret": {"secretsmanager:GetSecretValue"},
    },
    "WebSocketRole": {
        "WebSocketLogs": LOGS,
        "RunsTable": {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:Query"},
        "RunsTable/index/by_owner": {"dynamodb:Query"},
        "EventsTable": {"dynamodb:PutItem", "dynamodb:Query"},
        "ArtifactsBucket/runs/*": {"s3:PutObject"},
        "*": {"states:SendTaskSuccess"},
        "ConnectionsTable": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:Query",
            "dynamodb:ConditionCheckItem",
        },
        "execute-api:WebSocketApi/live/POST/@connections/*": {"execute-api:ManageConnections"},
    },
    "BroadcastRole": {
        "BroadcastLogs": LOGS,
        "EventsTable.StreamArn": {"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"},
        "RunsTable": {"dynamodb:GetItem"},
        "ConnectionsTable": {"dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:Query"},
        "execute-api:WebSocketApi/live/POST/@connections/*": {"execute-api:ManageConnections"},
        "DeadLetters": {"sqs:SendMessage"},
        "*": {"dynamodb:ListStreams"},
    },
    "WorkflowRole": {
        "WorkflowLogs": LOGS,
        "GitHubFunction": {"lambda:InvokeFunction"},
        "RunsTable": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:Query",
        },
        "RunsTable/index/by_owner": {"dynamodb:Query"},
        "EventsTable": {"dynamodb:PutItem"},
        "ArtifactsBucket": {"s3:ListBucket"},
        "ArtifactsBucket/runs/*": {"s3:GetObject", "s3:PutObject"},
        "ArtifactsBucket/runs/*/checkpoint*": {"s3:DeleteObject"},
        "Cluster": {"ecs:StopTask"},
        "ecs:task/Cluster/*": {"ecs:StopTask"},
        "*": {"states:SendTaskSuccess", "ecs:ListTasks"},
    },
    "TaskStoppedRole": {
        "TaskStoppedLogs": LOGS,
        "DeadLetters": {"sqs:SendMessage"},
        "*": {"states:SendTaskFailure"},
    },
    "ReconcileRole": {
        "ReconcileLogs": LOGS,
        "GitHubFunction": {"lambda:InvokeFunction"},
        "RunsTable": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:Query",
            "dynamodb:Scan",
        },
        "RunsTable/index/by_owner": {"dynamodb:Query"},
        "EventsTable": {"dynamodb:PutItem"},
        "ArtifactsBucket": {"s3:ListBucket"},
        "ArtifactsBucket/runs/*": {"s3:GetObject", "s3:PutObject"},
        "ArtifactsBucket/runs/*/checkpoint*": {"s3:DeleteObject"},
        "RunStateMachine": {"states:ListExecutions"},
        "states:execution:RunStateMachine.Name:*": {"states:DescribeExecution", "states:StopExecution"},
        "Cluster": {"ecs:StopTask"},
        "ecs:task/Cluster/*": {"ecs:StopTask"},
        "DeadLetters": {"sqs:SendMessage"},
        "*": {"states:SendTaskSuccess", "ecs:ListTasks"},
    },
    "WebhookRole": {
        "WebhookLogs": LOGS,
        "GitHubWebhookSecret": {"secretsmanager:GetSecretValue"},
        "GitHubFunction": {"lambda:InvokeFunction"},
    },
    "GitHubRole": {
        "GitHubLogs": LOGS,
        "RunsTable": {
            "dynamodb:GetItem",
            "dynamodb:PutItem",
            "dynamodb:UpdateItem",
            "dynamodb:DeleteItem",
            "dynamodb:Query",
        },
        "EventsTable": {"dynamodb:PutItem"},
        "IdempotencyTable": {"dynamodb:UpdateItem"},
        "ArtifactsBucket": {"s3:ListBucket"},
        "ArtifactsBucket/runs/*": {"s3:GetObject", "s3:PutObject"},
        "GitHubAppKeySecret": {"secretsmanager:GetSecretValue"},
        "GitHubWebhookSecret": {"secretsmanager:GetSecretValue"},
        "states:stateMachine:AWS::StackName-run": {"states:StartExecution"},
        "DeadLetters": {"sqs:SendMessage"},
        "*": {"states:SendTaskSuccess"},
    },
    "RunStateMachineRole": {
        "WorkflowFunction": {"lambda:InvokeFunction"},
        "ecs:task-definition/AWS::StackName-sandbox:*": {"ecs:RunTask"},
        "ecs:task/Cluster/*": {"ecs:TagResource"},
        "SandboxExecutionRole": {"iam:PassRole"},
        "SandboxTaskRole": {"iam:PassRole"},
        "*": {
            "logs:CreateLogDelivery",
            "logs:GetLogDelivery",
            "logs:UpdateLogDelivery",
            "logs:DeleteLogDelivery",
            "logs:ListLogDeliveries",
            "logs:PutResourcePolicy",
            "logs:DescribeResourcePolicies",
            "logs:DescribeLogGroups",
        },
    },
    "SandboxExecutionRole": {
        "SandboxLogs": LOGS,
        "ModelKeySecret": {"secretsmanager:GetSecretValue"},
        "Repository": {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"},
        "ecr:repository/*": {"ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"},
        "*": {"ecr:GetAuthorizationToken"},
    },
    "SandboxTaskRole": {
        "GitHubFunction": {"lambda:InvokeFunction"},
        "RunsTable": {"dynamodb:GetItem", "dynamodb:UpdateItem", "dynamodb:Query"},
        "EventsTable": {"dynamodb:PutItem", "dynamodb:Query"},
        "ArtifactsBucket": {"s3:ListBucket"},
        "ArtifactsBucket/runs/*": {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"},
        "ArtifactsBucket/runs/*/checkpoint*": {"s3:DeleteObject"},
        "DataKey": {"kms:Decrypt"},
        "bedrock:*::foundation-model/*": {"bedrock:InvokeModelWithResponseStream"},
        "bedrock:inference-profile/*": {"bedrock:InvokeModelWithResponseStream"},
        "bedrock:application-inference-profile/*": {"bedrock:InvokeModelWithResponseStream"},
        "*": {"states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"},
    },
}
IAM_ROLES = resources("AWS::IAM::Role")


def test_these_are_all_the_roles() -> None:
    assert set(IAM_ROLES) == set(MAY)


@pytest.mark.parametrize("role", MAY)
def test_a_role_may_do_exactly_what_is_listed(role: str) -> None:
    assert _grants(role) == MAY[role]


@pytest.mark.parametrize("role", MAY)
def test_a_role_holds_inline_policies_only(role: str) -> None:
    assert "ManagedPolicyArns" not in IAM_ROLES[role]["Properties"]


def test_every_function_has_a_role_of_its_own() -> None:
    roles = [function(role)["Role"]["Fn::GetAtt"][0] for role in ROLES]
    assert len(set(roles)) == len(ROLES)


def test_every_policy_on_everything_says_why() -> None:
    unexplained = [
        (name, statement["Action"])
        for name, resource in template()["Resources"].items()
        for statement in _statements(resource.get("Properties", {}))
        if "*" in _listed(statement["Resource"])
        and not resource.get("Metadata", {}).get("WildcardReasons", {}).get(statement.get("Sid"))
    ]
    assert not unexplained


def test_every_stated_reason_belongs_to_a_statement() -> None:
    for resource in template()["Resources"].values():
        reasons = resource.get("Metadata", {}).get("WildcardReasons", {})
        assert set(reasons) <= {statement.get("Sid") for statement in _statements(resource.get("Properties", {}))}


def test_no_role_may_do_every_action_of_a_service() -> None:
    actions = {action for role in IAM_ROLES for actions in _grants(role).values() for action in actions}
    assert not {action for action in actions if "*" in action}


def test_a_sandbox_may_use_bedrock_only_where_the_operator_says_so() -> None:
    (asked,) = [policy for policy in IAM_ROLES["SandboxTaskRole"]["Properties"]["Policies"] if "Fn::If" in policy]
    condition, granted, otherwise = asked["Fn::If"]
    assert (condition, granted["PolicyName"], otherwise) == ("UseBedrock", "bedrock", {"Ref": "AWS::NoValue"})
    always = [policy for policy in IAM_ROLES["SandboxTaskRole"]["Properties"]["Policies"] if policy is not asked]
    assert "bedrock" not in str(always)


def test_one_function_alone_reads_the_key_of_the_github_app() -> None:
    assert [role for role in MAY if "GitHubAppKeySecret" in _grants(role)] == ["GitHubRole"]


def test_whoever_runs_what_a_model_wrote_can_sign_no_webhook() -> None:
    assert {role for role in MAY if "GitHubWebhookSecret" in _grants(role)} == {"WebhookRole", "GitHubRole"}


def test_roles_are_passed_to_ecs_only() -> None:
    (passing,) = [
        statement
        for statement in _statements(IAM_ROLES["RunStateMachineRole"]["Properties"])
        if statement["Action"] == "iam:PassRole"
    ]
    assert passing["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


def _grants(role: str) -> Grants:
    grants: Grants = {}
    for statement in _statements(IAM_ROLES[role]["Properties"]):
        assert statement["Effect"] == "Allow"
        for resource in _listed(statement["Resource"]):
            grants.setdefault(resource, set()).update(_listed(statement["Action"]))
    return grants


def _statements(properties: Any) -> Iterator[dict[str, Any]]:
    """Every statement of a policy, wherever it is; who may assume a role is no resource policy."""
    if isinstance(properties, dict):
        if "Effect" in properties and "Resource" in properties:
            yield properties
        for value in properties.values():
            yield from _statements(value)
    elif isinstance(properties, list):
        for value in properties:
            yield from _statements(value)


def _listed(value: Any) -> list[str]:
    if isinstance(value, list):
        return [name for item in value for name in _listed(item)]
    if isinstance(value, dict) and "Fn::If" in value:
        return _listed(value["Fn::If"][1:])
    return [_name(value)]


def _name(value: Any) -> str:
    """An ARN as a person would say it: `RunsTable`, `ArtifactsBucket/runs/*`, `ecs:task/Cluster/*`."""
    if isinstance(value, str):
        return value
    if "Ref" in value:
        return str(value["Ref"])
    if "Fn::GetAtt" in value:
        return ".".join(value["Fn::GetAtt"]).removesuffix(".Arn").removesuffix(".Id")
    text = str(value["Fn::Sub"]).replace(".Arn}", "}")
    for prefix in ("arn:${AWS::Partition}:", "${AWS::Region}:", "${AWS::AccountId}:"):
        text = text.replace(prefix, "")
    return text.replace("${", "").replace("}", "")

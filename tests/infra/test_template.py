"""What the rest of the project, the operator and the bill rely on in template.yaml."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from sandbox_task.settings import Settings as SandboxSettings
from tests.infra.imports import find, reachable
from tests.infra.sources import ROLES, ROOT, function, properties, resources, template

if TYPE_CHECKING:
    from pathlib import Path

PARAMETERS = {
    "Stage", "AnthropicBaseUrl", "GitHubUrl", "GitHubApiUrl", "AllowedRepoUrls", "JwksUrl", "JwtIssuer", "JwtAudience",
    "CpuArchitecture", "UseSpot", "SandboxImage", "SandboxBackend", "Concurrency", "LogRetentionDays",
    "RunRetentionDays", "AlarmEmail", "CorsOrigins", "TaskCpu", "TaskMemory", "WebSocketManagementBase",
    "PublicWebSocketUrl", "ModelProvider", "AllowBedrock", "FallbackModel", "ModelPrices", "BedrockEndpoint",
    "EgressAllowed", "EgressRegistries", "EgressPrivate", "ApprovalWaitSeconds",
    "GitHubAppId", "GitHubTriggerLabel", "GitHubAssignee", "PublicUrl",
}  # fmt: skip
OUTPUTS = {
    "ApiUrl", "WebSocketUrl", "RunsTable", "EventsTable", "ConnectionsTable", "IdempotencyTable", "ArtifactsBucket",
    "StateMachineArn", "ClusterArn", "TaskDefinitionArn", "JwtSecretArn", "ModelKeySecretArn", "HttpApiId",
    "WebSocketApiId", "TaskStoppedFunctionArn", "ReconcileFunctionArn",
    "GitHubAppKeySecretArn", "GitHubWebhookSecretArn", "GitHubFunctionName",
}  # fmt: skip
# The workflow function is part of the state machine and can't name it; reconcile starts no sandbox.
NOT_GIVEN = {"workflow": {"STATE_MACHINE_ARN"}, "reconcile": {"USE_SPOT"}}
READ_LATER = {"api": {"GITHUB_API_URL"}}
OPEN_ROUTES = {"GET /health", "GET /openapi.json", "POST /github/webhook"}  # GitHub signs what it sends
ROUTES = OPEN_ROUTES | {
    "POST /execute",
    "GET /runs",
    "GET /runs/{run_id}",
    "GET /runs/{run_id}/events",
    "GET /runs/{run_id}/logs",
    "GET /runs/{run_id}/diff",
    "POST /runs/{run_id}/cancel",
    "POST /runs/{run_id}/budget",
    "POST /runs/{run_id}/messages",
    "POST /runs/{run_id}/approvals/{approval_id}",
    "POST /runs/{run_id}/pause",
    "POST /runs/{run_id}/resume",
    "GET /usage",
    "POST /tickets",
}
UNKNOWN_TO_THE_EMBEDDED_AWS = {
    "AWS::ApiGatewayV2::Deployment",
    "AWS::ApiGatewayV2::RouteResponse",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::ECS::ClusterCapacityProviderAssociations",
    "AWS::Logs::QueryDefinition",
    "AWS::StepFunctions::StateMachineAlias",
}
BILLED_BY_THE_HOUR = {
    "AWS::EC2::NatGateway",
    "AWS::EC2::EIP",
    "AWS::EC2::Instance",
    "AWS::ECS::Service",
    "AWS::ElasticLoadBalancingV2::LoadBalancer",
    "AWS::RDS::DBInstance",
    "AWS::ElastiCache::CacheCluster",
    "AWS::EFS::MountTarget",
}


def test_every_parameter_has_a_default_that_deploys() -> None:
    assert set(template()["Parameters"]) == PARAMETERS
    assert all("Default" in parameter for parameter in template()["Parameters"].values())


def test_the_outputs_that_the_command_line_reads_are_there() -> None:
    assert set(template()["Outputs"]) >= OUTPUTS


def test_nothing_is_billed_by_the_hour() -> None:
    assert not BILLED_BY_THE_HOUR & _types()
    endpoints = resources("AWS::EC2::VPCEndpoint").values()
    assert {endpoint["Properties"]["VpcEndpointType"] for endpoint in endpoints} == {"Gateway"}
    assert all(table["Properties"]["BillingMode"] == "PAY_PER_REQUEST" for table in _tables().values())
    assert not any("ProvisionedConcurrencyConfig" in function(role) for role in ROLES)


def test_nothing_is_used_that_only_one_of_the_two_places_knows() -> None:
    assert not UNKNOWN_TO_THE_EMBEDDED_AWS & _types()


def test_the_functions_say_the_version_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert template()["Globals"]["Function"]["Environment"]["Variables"]["VERSION"] == project["version"]


@pytest.mark.parametrize("role", ROLES)
def test_a_function_is_given_the_variables_that_its_settings_read_and_no_others(role: str) -> None:
    given = set(function(role).get("Environment", {}).get("Variables", {}))
    shared = set(template()["Globals"]["Function"]["Environment"]["Variables"])
    assert given - READ_LATER.get(role, set()) == _read_by_settings(role) - shared - NOT_GIVEN.get(role, set())


@pytest.mark.parametrize("role", ROLES)
def test_a_function_logs_to_a_group_that_forgets(role: str) -> None:
    group = properties(function(role)["LoggingConfig"]["LogGroup"]["Ref"])
    assert group["RetentionInDays"] == {"Ref": "LogRetentionDays"}


def test_every_log_group_forgets() -> None:
    groups = resources("AWS::Logs::LogGroup").values()
    assert all(group["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"} for group in groups)


def test_the_http_api_has_these_routes_and_all_but_the_open_ones_ask_who_is_there() -> None:
    routes = {route["RouteKey"]: route.get("AuthorizationType", "NONE") for route in _routes("HttpApi")}
    assert set(routes) == ROUTES
    assert {route for route, asks in routes.items() if asks == "NONE"} == OPEN_ROUTES


def test_the_authorizer_is_asked_about_every_request() -> None:
    authorizer = properties("HttpAuthorizer")
    assert authorizer["AuthorizerType"] == "REQUEST"
    assert authorizer["AuthorizerPayloadFormatVersion"] == "2.0"
    assert authorizer["EnableSimpleResponses"] is True
    assert authorizer["AuthorizerResultTtlInSeconds"] == 0


def test_the_websocket_api_has_its_three_routes() -> None:
    assert {route["RouteKey"] for route in _routes("WebSocketApi")} == {"$connect", "$disconnect", "$default"}


def test_every_stage_deploys_itself_and_throttles() -> None:
    for stage in resources("AWS::ApiGatewayV2::Stage").values():
        assert stage["Properties"]["AutoDeploy"] is True
        assert stage["Properties"]["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0


def test_every_table_is_encrypted_expires_its_rows_and_can_be_restored() -> None:
    for table in (found["Properties"] for found in _tables().values()):
        assert table["SSESpecification"]["KMSMasterKeyId"] == {"Fn::GetAtt": ["DataKey", "Arn"]}
        assert table["TimeToLiveSpecification"]["Enabled"] is True
        assert table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert table["DeletionProtectionEnabled"] == {"Fn::If": ["IsProd", True, False]}


def test_the_events_table_streams_what_is_new() -> None:
    assert properties("EventsTable")["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}


def test_the_bucket_is_private_encrypted_and_forgets() -> None:
    bucket = properties("ArtifactsBucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    assert "ServerSideEncryptionConfiguration" in bucket["BucketEncryption"]
    assert bucket["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert rules["runs-expire"]["ExpirationInDays"] == {"Ref": "RunRetentionDays"}
    assert rules["unfinished-uploads"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}


def test_the_bucket_refuses_whoever_comes_without_tls() -> None:
    (statement,) = properties("ArtifactsBucketPolicy")["PolicyDocument"]["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", "s3:*")
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_nothing_can_call_into_a_sandbox() -> None:
    group = properties("SandboxSecurityGroup")
    assert "SecurityGroupIngress" not in group
    assert {rule["ToPort"] for rule in group["SecurityGroupEgress"]} == {443, 80, 53}


def test_a_sandbox_gets_its_variables_and_the_model_key_only_as_a_secret() -> None:
    (container,) = properties("TaskDefinition")["ContainerDefinitions"]
    names = {variable["Name"] for variable in container["Environment"]}
    assert names == {
        "RUNS_TABLE", "EVENTS_TABLE", "ARTIFACTS_BUCKET", "RUN_SECRETS_KEY_ID", "GITHUB_URL", "ANTHROPIC_BASE_URL",
        "SANDPIPER_SANDBOX", "MODEL_PROVIDER", "ALLOW_BEDROCK", "FALLBACK_MODEL", "MODEL_PRICES",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        "EGRESS_ALLOWED", "EGRESS_REGISTRIES", "EGRESS_PRIVATE", "APPROVAL_WAIT_SECONDS",
        "GITHUB_API_URL", "GITHUB_FUNCTION", "PUBLIC_URL",
    }  # fmt: skip
    assert [secret["Name"] for secret in container["Secrets"]] == ["ANTHROPIC_API_KEY"]
    required = {name.upper() for name, field in SandboxSettings.model_fields.items() if field.is_required()}
    assert required - names == {"RUN_ID", "ATTEMPT", "TASK_TOKEN"}
    assert container["LinuxParameters"]["InitProcessEnabled"] is True


def test_a_failed_event_is_kept_and_noticed() -> None:
    letters = {"Fn::GetAtt": ["DeadLetters", "Arn"]}
    for role in ("task_stopped", "reconcile", "github"):
        assert function(role)["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"] == letters
        assert all(
            event["Properties"]["DeadLetterConfig"]["Arn"] == letters for event in function(role)["Events"].values()
        )
    stream = function("broadcast")["Events"]["NewEvents"]["Properties"]
    assert stream["DestinationConfig"]["OnFailure"]["Destination"] == letters


def test_every_alarm_tells_the_topic() -> None:
    alarms = resources("AWS::CloudWatch::Alarm")
    assert len(alarms) >= 6
    assert all(alarm["Properties"]["AlarmActions"] == [{"Ref": "AlarmTopic"}] for alarm in alarms.values())


def test_the_alarm_on_mended_runs_watches_the_metric_that_reconcile_writes() -> None:
    alarm = properties("RunsMendedAlarm")
    variables = template()["Globals"]["Function"]["Environment"]["Variables"]
    written = "".join(path.read_text() for path in (ROOT / "functions/reconcile").glob("*.py"))
    assert f'name="{alarm["MetricName"]}"' in written
    assert alarm["Namespace"] == variables["POWERTOOLS_METRICS_NAMESPACE"]
    assert alarm["Dimensions"] == [{"Name": "service", "Value": variables["POWERTOOLS_SERVICE_NAME"]}]


def test_the_dashboard_is_valid_json() -> None:
    body = re.sub(r"\$\{[^}]*\}", "name", properties("Dashboard")["DashboardBody"]["Fn::Sub"])
    assert len(json.loads(body)["widgets"]) >= 4


def test_code_and_definition_are_files_of_their_own() -> None:
    assert not any("InlineCode" in function(role) for role in ROLES)
    assert properties("RunStateMachine")["DefinitionUri"] == "statemachine/run.asl.json"


def test_execution_data_which_holds_task_tokens_is_not_logged() -> None:
    assert properties("RunStateMachine")["Logging"]["IncludeExecutionData"] is False


def test_the_deployment_settings_hold_no_secret() -> None:
    settings = (ROOT / "samconfig.toml").read_text()
    assert {"default", "prod"} <= set(tomllib.loads(settings))
    assert not re.search(r"(?i)key|password|token=", settings)


def _types() -> set[str]:
    return {resource["Type"] for resource in template()["Resources"].values()}


def _tables() -> dict[str, dict[str, Any]]:
    return resources("AWS::DynamoDB::Table")


def _routes(api: str) -> list[dict[str, Any]]:
    routes = resources("AWS::ApiGatewayV2::Route").values()
    return [route["Properties"] for route in routes if route["Properties"]["ApiId"] == {"Ref": api}]


def _read_by_settings(role: str) -> set[str]:
    modules = [find(name) for name in reachable(f"{role}.handler").inside if name.endswith("settings")]
    return {name for path in modules if path for name in _variables(path)}


def _variables(path: Path) -> set[str]:
    constants = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
    return {name for name in constants if isinstance(name, str) and re.fullmatch(r"[A-Z][A-Z0-9_]+", name)}

from __future__ import annotations

import copy
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sandpiper_local.errors import DeployFailed
from sandpiper_local.template.adapter import HARMLESS_DROPS, adapt
from sandpiper_local.template.state_machine import LONGEST_TASK_SECONDS, with_fixed_timeouts

if TYPE_CHECKING:
    from pathlib import Path

FUNCTION: dict[str, Any] = {
    "Type": "AWS::Serverless::Function",
    "Properties": {"Runtime": "python3.13", "Handler": "api.handler.handler", "CodeUri": "Api", "Role": "arn:aws:role"},
}


class Workbench:
    """A build directory with a function and a layer, and a bucket that is a dictionary."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bucket: dict[str, bytes] = {}
        for name in ("Api/api", "Layer/python"):
            (root / name).mkdir(parents=True)
        (root / "Api" / "api" / "handler.py").write_text("def handler(event, context): ...\n")
        (root / "Layer" / "python" / "package.py").write_text("x = 1\n")

    def upload(self, key: str, content: bytes) -> str:
        self.bucket[key] = content
        return f"s3://bucket/{key}"

    def adapt(self, resources: dict[str, Any]) -> dict[str, Any]:
        template = {
            "Transform": "AWS::Serverless-2016-10-31",
            "Parameters": {"Stage": {"Type": "String", "Default": "dev"}},
            "Resources": resources,
        }
        built = self.root / "template.yaml"
        built.write_text(yaml.safe_dump(template))
        layers = self.root / "layers"
        adapted = adapt(built, region="us-east-1", layers=layers, upload=self.upload)
        found: dict[str, Any] = adapted["Resources"]
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


def test_code_goes_to_the_bucket_as_a_zip(bench: Workbench) -> None:
    adapted = bench.adapt({"Api": FUNCTION})
    code = adapted["Api"]["Properties"]["Code"]
    assert code["S3Bucket"] == "bucket"
    with zipfile.ZipFile(io.BytesIO(bench.bucket[code["S3Key"]])) as archive:
        assert archive.namelist() == ["api/handler.py"]


def test_functions_with_the_same_code_share_one_object(bench: Workbench) -> None:
    bench.adapt({"One": FUNCTION, "Alias": FUNCTION, "Two": copy.deepcopy(FUNCTION)})
    assert len(bench.bucket) == 1


def test_code_that_was_not_built_makes_the_deployment_fail(bench: Workbench) -> None:
    with pytest.raises(DeployFailed, match="Nowhere"):
        bench.adapt({"Api": {**FUNCTION, "Properties": {**FUNCTION["Properties"], "CodeUri": "Nowhere"}}})


def test_a_layer_is_a_pointer_to_a_copy_that_a_new_build_does_not_touch(bench: Workbench) -> None:
    layer = {"Type": "AWS::Serverless::LayerVersion", "Properties": {"ContentUri": "Layer"}}
    bench.adapt({"Layer": layer})
    (content,) = bench.bucket.values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        copy = bench.root / "layers" / archive.read("sandpiper-layer").decode()
    (bench.root / "Layer" / "python" / "package.py").write_text("x = 2\n")
    assert (copy / "python" / "package.py").read_text() == "x = 1\n"


def test_what_refers_to_a_parameter_is_left_for_the_deployment_to_fill_in(bench: Workbench) -> None:
    settings = {"STAGE": {"Ref": "Stage"}, "URL": {"Fn::Sub": "https://${Stage}.example.com"}}
    function = copy.deepcopy(FUNCTION)
    function["Properties"]["Environment"] = {"Variables": settings}
    adapted = bench.adapt({"Api": function})
    assert adapted["Api"]["Properties"]["Environment"]["Variables"] == settings


@pytest.mark.parametrize("kind", sorted(HARMLESS_DROPS))
def test_what_is_on_the_list_is_left_out_and_nobody_depends_on_it_any_more(bench: Workbench, kind: str) -> None:
    topic = {"Type": "AWS::SNS::Topic", "DependsOn": ["Dropped", "Other"]}
    adapted = bench.adapt({"Dropped": {"Type": kind}, "Topic": topic, "Other": {"Type": "AWS::SNS::Topic"}})
    assert adapted.keys() == {"Topic", "Other"}
    assert adapted["Topic"]["DependsOn"] == ["Other"]


def test_a_type_that_is_not_on_the_list_stays_for_the_embedded_aws_to_refuse(bench: Workbench) -> None:
    assert "Pipe" in bench.adapt({"Pipe": {"Type": "AWS::Nonsense::Pipe"}})


def test_a_resource_that_needs_a_dropped_one_makes_the_deployment_fail(bench: Workbench) -> None:
    needy = {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": {"Fn::GetAtt": ["Dropped", "Arn"]}}}
    with pytest.raises(DeployFailed, match="Topic"):
        bench.adapt({"Dropped": {"Type": "AWS::CloudWatch::CompositeAlarm"}, "Topic": needy})


def test_a_stage_forgets_its_deployment(bench: Workbench) -> None:
    stage = {"Type": "AWS::ApiGatewayV2::Stage", "Properties": {"StageName": "live", "DeploymentId": {"Ref": "D"}}}
    adapted = bench.adapt({"D": {"Type": "AWS::ApiGatewayV2::Deployment"}, "Stage": stage})
    assert adapted["Stage"]["Properties"] == {"StageName": "live"}


def test_an_alarm_over_several_metrics_is_left_out_and_one_over_one_metric_stays(bench: Workbench) -> None:
    alarm = "AWS::CloudWatch::Alarm"
    adapted = bench.adapt(
        {
            "Math": {"Type": alarm, "Properties": {"Metrics": []}},
            "Plain": {"Type": alarm, "Properties": {"MetricName": "Errors"}},
        }
    )
    assert adapted.keys() == {"Plain"}


def test_an_api_whose_routes_would_be_ignored_makes_the_deployment_fail(bench: Workbench) -> None:
    with pytest.raises(DeployFailed, match="OpenAPI body"):
        bench.adapt({"Api": {"Type": "AWS::ApiGatewayV2::Api", "Properties": {"Body": {"paths": {}}}}})


def test_secrets_of_a_container_are_spelled_as_the_api_spells_them(bench: Workbench) -> None:
    container = {"Name": "sandbox", "Secrets": [{"Name": "KEY", "ValueFrom": "arn"}]}
    definition = {"Type": "AWS::ECS::TaskDefinition", "Properties": {"ContainerDefinitions": [container]}}
    adapted = bench.adapt({"Task": definition})
    containers = adapted["Task"]["Properties"]["ContainerDefinitions"]
    assert containers[0]["Secrets"] == [{"name": "KEY", "valueFrom": "arn"}]


def test_only_roles_of_tasks_may_be_assumed_by_the_account(bench: Workbench) -> None:
    def role(service: str) -> dict[str, Any]:
        statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": [statement]}}}

    adapted = bench.adapt({"Task": role("ecs-tasks.amazonaws.com"), "Function": role("lambda.amazonaws.com")})
    principals = {
        name: resource["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]["Principal"].keys()
        for name, resource in adapted.items()
    }
    assert principals == {"Task": {"Service", "AWS"}, "Function": {"Service"}}


def test_a_bucket_policy_keeps_everything_but_the_demand_for_tls(bench: Workbench) -> None:
    tls_only = {"Sid": "Tls", "Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    other = {"Sid": "Other", "Effect": "Deny"}
    policy = {"Type": "AWS::S3::BucketPolicy", "Properties": {"PolicyDocument": {"Statement": [tls_only, other]}}}
    adapted = bench.adapt({"Policy": policy})
    assert adapted["Policy"]["Properties"]["PolicyDocument"]["Statement"] == [other]


def test_a_timeout_that_is_an_expression_becomes_a_number_at_any_depth() -> None:
    inner = {"States": {"Deep": {"Type": "Task", "TimeoutSeconds": "{% $states.input.seconds %}"}}}
    machine = {
        "States": {
            "Plain": {"Type": "Task", "TimeoutSeconds": 5},
            "Chosen": {"Type": "Task", "TimeoutSeconds": "{% $states.input.reason = 'a1' ? 60 : 3600 %}"},
            "Fan": {"Type": "Map", "ItemProcessor": inner},
            "Both": {"Type": "Parallel", "Branches": [inner]},
        }
    }
    states = json.loads(with_fixed_timeouts(json.dumps(machine).encode()))["States"]
    assert states["Plain"]["TimeoutSeconds"] == 5
    assert states["Chosen"]["TimeoutSeconds"] == 3600
    assert states["Fan"]["ItemProcessor"]["States"]["Deep"]["TimeoutSeconds"] == LONGEST_TASK_SECONDS
    assert states["Both"]["Branches"][0]["States"]["Deep"]["TimeoutSeconds"] == LONGEST_TASK_SECONDS

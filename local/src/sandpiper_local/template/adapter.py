"""The built SAM template → plain CloudFormation that ministack really serves.

It changes how things are said, never what is deployed. What can't be said to ministack is on the list of harmless
drops below, with the reason; anything else that it does not know makes the deployment fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

from sandpiper_local.errors import DeployFailed
from sandpiper_local.template.packaging import package

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from sandpiper_local.template.packaging import Upload

HARMLESS_DROPS = {
    "AWS::ApiGatewayV2::Deployment": "a stage serves the current routes at once",
    "AWS::ApiGatewayV2::RouteResponse": "frames are sent by post_to_connection",
    "AWS::CloudWatch::CompositeAlarm": "nobody is paged by an AWS on a laptop",
    "AWS::ECS::ClusterCapacityProviderAssociations": "tasks are processes: there is no capacity to choose",
    "AWS::Logs::QueryDefinition": "saved queries are for the AWS console",
}


def adapt(built: Path, *, region: str, layers: Path, upload: Upload) -> dict[str, Any]:
    """The same whatever the parameters are given: what refers to them is left for the deployment to fill in."""
    source = yaml_parse(built.read_text())
    package(source, built.parent, layers=layers, upload=upload)
    template = _translate(source, region)
    resources = template["Resources"]
    _refuse_unread(resources)
    _drop_harmless(resources)
    for resource in resources.values():
        _FIXES.get(resource["Type"], _as_it_is)(resource.get("Properties", {}))
    return template


def _translate(source: dict[str, Any], region: str) -> dict[str, Any]:
    translator = Translator(None, Parser(), boto_session=boto3.session.Session(region_name=region))
    translated: dict[str, Any] = translator.translate(source, parameter_values={}, get_managed_policy_map=dict)
    translated.pop("Transform", None)
    return translated


def _refuse_unread(resources: Mapping[str, Any]) -> None:
    """ministack takes an OpenAPI body, as SAM's HttpApi events write it, and serves none of its routes."""
    for name, resource in resources.items():
        if resource["Type"] == "AWS::ApiGatewayV2::Api" and "Body" in resource.get("Properties", {}):
            raise DeployFailed(
                f"{name} has an OpenAPI body: declare Route, Integration and Authorizer resources instead"
            )


def _drop_harmless(resources: dict[str, Any]) -> None:
    dropped = {name for name, resource in resources.items() if _is_harmless(resource)}
    for name in dropped:
        del resources[name]
    for name, resource in resources.items():
        if resource["Type"] == "AWS::ApiGatewayV2::Stage" and _refers(resource["Properties"], dropped):
            resource["Properties"].pop("DeploymentId", None)
        _forget_dependencies(resource, dropped)
        if _refers(resource, dropped):
            raise DeployFailed(f"{name} refers to a resource that the embedded AWS has to leave out: {sorted(dropped)}")


def _is_harmless(resource: Mapping[str, Any]) -> bool:
    """Alarms over several metrics are not known to ministack either; those over one are deployed."""
    is_metric_math = resource["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in resource["Properties"]
    return is_metric_math or resource["Type"] in HARMLESS_DROPS


def _forget_dependencies(resource: dict[str, Any], dropped: set[str]) -> None:
    named = resource.pop("DependsOn", [])
    if kept := [name for name in ([named] if isinstance(named, str) else named) if name not in dropped]:
        resource["DependsOn"] = kept


def _refers(value: Any, names: set[str]) -> bool:
    if isinstance(value, dict):
        if isinstance(ref := value.get("Ref"), str):
            return ref in names
        if attribute := value.get("Fn::GetAtt"):
            return (attribute.split(".") if isinstance(attribute, str) else attribute)[0] in names
        return any(_refers(item, names) for item in value.values())
    return isinstance(value, list) and any(_refers(item, names) for item in value)


def _fix_task_definition(properties: dict[str, Any]) -> None:
    """Entries of `Secrets` in the spelling of the API: ministack translates the other lists, not this one."""
    for container in properties.get("ContainerDefinitions", []):
        if "Secrets" in container:
            container["Secrets"] = [
                {"name": secret["Name"], "valueFrom": secret["ValueFrom"]} for secret in container["Secrets"]
            ]


def _fix_role(properties: dict[str, Any]) -> None:
    """Where ECS may assume a role, the account may too: here, the agent that plays ECS is an ordinary caller."""
    for statement in properties["AssumeRolePolicyDocument"]["Statement"]:
        principal = statement.get("Principal", {})
        services = principal.get("Service", []) if isinstance(principal, dict) else []
        if "ecs-tasks.amazonaws.com" in ([services] if isinstance(services, str) else services):
            principal["AWS"] = {"Fn::Sub": "arn:aws:iam::${AWS::AccountId}:root"}
            statement.pop("Condition", None)  # SourceArn and SourceAccount are set by the real ECS only


def _fix_bucket_policy(properties: dict[str, Any]) -> None:
    """No refusal of plain HTTP: on loopback there is no TLS to insist on."""
    document = properties["PolicyDocument"]
    document["Statement"] = [
        statement
        for statement in document["Statement"]
        if statement.get("Condition") != {"Bool": {"aws:SecureTransport": "false"}}
    ]


def _as_it_is(_properties: dict[str, Any]) -> None:
    pass


_FIXES: dict[str, Callable[[dict[str, Any]], None]] = {
    "AWS::ECS::TaskDefinition": _fix_task_definition,
    "AWS::IAM::Role": _fix_role,
    "AWS::S3::BucketPolicy": _fix_bucket_policy,
}

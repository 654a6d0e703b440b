"""The way from nothing to ready: build, start the parts, deploy, write down what is where."""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandpiper_local import paths
from sandpiper_local.aws import HOST, SYSTEM_PATH, EmbeddedAws, answers
from sandpiper_local.build import up_to_date_bundle
from sandpiper_local.deploy import STACK_NAME, deploy, put_secrets
from sandpiper_local.errors import BadSetting

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sandpiper_local.deploy import Deployed
    from sandpiper_local.parts import Parts
    from sandpiper_local.paths import StateDir

    type Report = Callable[[dict[str, Any]], None]

_SCENARIOS = Path(__file__).parent / "sample" / "scenarios"
_READY_SECONDS = 60
# the sandbox redacts its key wherever it is printed, so this must be no word that anyone writes
_NO_KEY = "sandpiper-local-needs-no-model-key"
BACKENDS = ("", "bwrap", "uid")
# on your own machine only dollars are scarce
_QUOTAS = {"StartsPerMinute": "1000", "StartsPerDay": "5000"}
_BARE = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"}


@dataclass(frozen=True, kw_only=True)
class Startup:
    environment: Mapping[str, str]
    state: StateDir
    port: int
    scratch: Path
    parts: Parts
    report: Report
    aws: EmbeddedAws = field(default_factory=EmbeddedAws)

    def run(self) -> None:
        self._progress("starting the embedded AWS")
        self.parts.start("aws", self.aws.command(), self.aws.environment(self.scratch))
        model_url = self._model_url()
        self._progress("building the functions")
        with up_to_date_bundle(self.parts, self.state, self.environment, region=self.aws.region) as bundle:
            self.parts.wait_until(self.aws.is_ready, part="aws", seconds=_READY_SECONDS)
            self._progress("deploying template.yaml")
            deployed = deploy(self.aws, bundle, self._template_parameters(model_url))
        put_secrets(
            self.aws,
            deployed.outputs,
            jwt_secret=self._jwt_secret(),
            model_key=self.environment.get("ANTHROPIC_API_KEY") or _NO_KEY,
            github_key=self.environment.get("GITHUB_APP_PRIVATE_KEY"),
            webhook_secret=self.environment.get("GITHUB_WEBHOOK_SECRET"),
        )
        self._progress("starting the ECS agent and the front door")
        self._start_ecs_agent(deployed)
        self._start_front_door(deployed)
        info = self._write_info(deployed)
        self.report({"event": "ready"} | {name: value for name, value in info.items() if name != "credentials"})

    @property
    def _url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def _progress(self, message: str) -> None:
        self.report({"event": "progress", "message": message})

    @property
    def _model_is_scripted(self) -> bool:
        return not (self.environment.get("ANTHROPIC_API_KEY") or self.environment.get("ANTHROPIC_BASE_URL"))

    def _model_url(self) -> str:
        """Where the sandboxes find the model; empty means the vendor's own address."""
        if not self._model_is_scripted:
            return self.environment.get("ANTHROPIC_BASE_URL", "")
        self._progress("starting the scripted model (set ANTHROPIC_API_KEY for a real one)")
        command = [sys.executable, "-m", "sandpiper_local.scripted_model", "--port", "0", "--scenario", str(_SCENARIOS)]
        self.parts.start("model", command, _BARE)
        self.parts.wait_until(lambda: self._announced_url() is not None, part="model", seconds=_READY_SECONDS)
        return self._announced_url() or ""

    def _announced_url(self) -> str | None:
        """The scripted model says where it listens in a line of JSON."""
        found = re.search(r'^{"url": "(.+)"}$', self.state.log("model").read_text(), re.MULTILINE)
        return found[1] if found else None

    def _template_parameters(self, model_url: str) -> dict[str, str]:
        bedrock = self.environment.get("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "")
        chosen = {
            "AnthropicBaseUrl": model_url,
            "ModelProvider": self.environment.get("MODEL_PROVIDER", ""),
            "FallbackModel": self.environment.get("FALLBACK_MODEL", ""),
            "ModelPrices": self.environment.get("MODEL_PRICES", ""),
            "AllowBedrock": "true" if bedrock else "",
            "BedrockEndpoint": bedrock or model_url,
            "GitHubUrl": self.environment.get("GITHUB_URL", ""),
            "GitHubApiUrl": self.environment.get("GITHUB_API_URL", ""),
            "GitHubAppId": self.environment.get("GITHUB_APP_ID", ""),
            "ApprovalWaitSeconds": self.environment.get("APPROVAL_WAIT_SECONDS", ""),
            "SandboxBackend": self.environment.get("SANDPIPER_SANDBOX", ""),
            "EgressAllowed": self.environment.get("EGRESS_ALLOWED", ""),
            "EgressRegistries": self.environment.get("EGRESS_REGISTRIES", ""),
            "EgressPrivate": self.environment.get("EGRESS_PRIVATE", ""),
        }
        return (
            {name: value for name, value in chosen.items() if value}
            | _QUOTAS
            | {
                "AllowedRepoUrls": f"{self._url}/git/",
                "PublicUrl": self._url,
                "WebSocketManagementBase": self.aws.execute_api,
                "PublicWebSocketUrl": self._websocket_url,
            }
        )

    @property
    def _websocket_url(self) -> str:
        return f"ws://{HOST}:{self.port}/ws"

    def _jwt_secret(self) -> str:
        """The operator's, or one that is made once and kept, so that tokens outlive a restart."""
        file = self.state.jwt_secret
        given = self.environment.get("SANDBOX_JWT_SECRET")
        if given is None and file.exists():
            return file.read_text()
        secret = given or secrets.token_urlsafe(48)
        write_private(file, secret)
        return secret

    def _start_ecs_agent(self, deployed: Deployed) -> None:
        settings = {
            "cluster": deployed.outputs["ClusterArn"],
            "task_stopped_function": deployed.outputs["TaskStoppedFunctionArn"],
            "endpoint": self.aws.endpoint,
            "region": self.aws.region,
            "logs": str(self.state.tasks),
            "scratch": str(self.scratch),
            "tools": str(paths.TOOLBOX) if paths.TOOLBOX.exists() else "",
        }
        environment = self.aws.client_environment() | _BARE
        command = [sys.executable, "-m", "sandpiper_local.ecs_agent", json.dumps(settings)]
        self.parts.start("ecs_agent", command, environment)

    def _start_front_door(self, deployed: Deployed) -> None:
        api, socket_api = deployed.outputs["HttpApiId"], deployed.outputs["WebSocketApiId"]
        settings = {
            "port": str(self.port),
            "public_url": self._url,
            "http_backend": f"{self.aws.execute_api}/{api}/$default",
            "websocket_backend": f"{self.aws.execute_api}/{socket_api}/{deployed.websocket_stage}",
        }
        command = [sys.executable, "-m", "sandpiper_local.front_door", json.dumps(settings)]
        self.parts.start("front_door", command, _BARE)
        # the first request also starts the function's worker, so that the first run does not wait for it
        self.parts.wait_until(lambda: answers(f"{self._url}/health"), part="front_door", seconds=_READY_SECONDS)

    @property
    def _fake_github_url(self) -> str | None:
        """Only of one that this stack has started: of another one nobody may ask what they ask of a fake."""
        return self.environment["GITHUB_URL"] if "github" in self.parts.pids else None

    def _write_info(self, deployed: Deployed) -> dict[str, Any]:
        info = {
            "api_url": self._url,
            "ws_url": self._websocket_url,
            "aws_endpoint": self.aws.endpoint,
            "region": self.aws.region,
            "credentials": self.aws.credentials,
            "stack_name": STACK_NAME,
            "outputs": deployed.outputs,
            "pids": {"up": os.getpid(), **self.parts.pids},
            "github_url": self._fake_github_url,
            "model": "scripted" if self._model_is_scripted else "anthropic",
            "state_dir": str(self.state.root),
        }
        write_private(self.state.info, json.dumps(info, indent=2))
        return info


def check_environment(environment: Mapping[str, str]) -> None:
    """Raises BadSetting, before anything is started."""
    backend = environment.get("SANDPIPER_SANDBOX", "")
    if backend not in BACKENDS:
        raise BadSetting(f"SANDPIPER_SANDBOX is {backend!r}: it must be bwrap or uid, or not set")


def write_private(file: Path, text: str) -> None:
    """Readable by the owner only, and never half written."""
    partial = file.with_name(f"{file.name}.new")
    partial.unlink(missing_ok=True)
    partial.touch(mode=0o600)
    partial.write_text(text)
    partial.replace(file)

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from sandpiper.adapters.sandboxes import EcsSandboxes
from sandpiper.testing.fakes import FakeSandboxes
from tests.contract.samples import new_run_id

if TYPE_CHECKING:
    from sandpiper.ports import Sandboxes
    from tests.contract.worlds import Aws


class World(Protocol):
    """The port, and who launches what it stops."""

    @property
    def sandboxes(self) -> Sandboxes: ...

    def launch(self, run_id: str) -> None: ...


@dataclass(frozen=True)
class FakeWorld:
    sandboxes: FakeSandboxes

    def launch(self, run_id: str) -> None:
        self.sandboxes.launch(run_id, {"RUN_ID": run_id, "ATTEMPT": "1", "TASK_TOKEN": "t"})


@dataclass(frozen=True)
class RealWorld:
    sandboxes: EcsSandboxes
    ecs: Any
    cluster: str

    def launch(self, run_id: str) -> None:
        self.ecs.run_task(cluster=self.cluster, taskDefinition="sandbox", startedBy=run_id)


@pytest.fixture(scope="session")
def real_world(aws: Aws) -> RealWorld:
    ecs = aws.client("ecs")
    cluster = ecs.create_cluster(clusterName=f"sandboxes-{uuid.uuid4()}")["cluster"]["clusterArn"]
    ecs.register_task_definition(family="sandbox", containerDefinitions=[{"name": "sandbox", "image": "sandbox"}])
    return RealWorld(EcsSandboxes(ecs, cluster_arn=cluster), ecs, cluster)


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest) -> World:
    if request.param == "fake":
        return FakeWorld(FakeSandboxes())
    real: RealWorld = request.getfixturevalue("real_world")
    return real


def test_every_sandbox_of_a_run_is_stopped_and_those_of_others_go_on(world: World, run_id: str) -> None:
    other = new_run_id()
    for launched in (run_id, run_id, other):
        world.launch(launched)
    assert world.sandboxes.stop_all(run_id, "the run was cancelled " * 20) == 2
    assert world.sandboxes.stop_all(run_id, "again") == 0
    assert world.sandboxes.stop_all(other, "done") == 1


def test_a_run_without_a_sandbox_has_nothing_to_stop(world: World, run_id: str) -> None:
    assert world.sandboxes.stop_all(run_id, "done") == 0


def test_the_fake_refuses_overrides_that_ecs_refuses(run_id: str) -> None:
    with pytest.raises(ValueError, match="characters of overrides"):
        FakeSandboxes().launch(run_id, {"TASK_TOKEN": "t" * 8192})

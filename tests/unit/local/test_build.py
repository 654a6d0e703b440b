"""What `up` deploys is made once of the sources as they are, and what makes it is loaded only then."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from sandpiper_local import build, paths
from sandpiper_local.build import up_to_date_bundle
from sandpiper_local.deploy import deploy
from sandpiper_local.errors import BuildFailed, DeployFailed
from sandpiper_local.paths import StateDir
from sandpiper_local.template.bundle import TEMPLATE, make_bundle, objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FUNCTION = {"Runtime": "python3.13", "Handler": "api.handler.handler", "CodeUri": "Api", "Role": "arn:aws:role"}
BUILT = {
    "Transform": "AWS::Serverless-2016-10-31",
    "Parameters": {"Stage": {"Type": "String", "Default": "dev"}},
    "Resources": {
        "Api": {"Type": "AWS::Serverless::Function", "Properties": FUNCTION},
        "Layer": {"Type": "AWS::Serverless::LayerVersion", "Properties": {"ContentUri": "Layer"}},
    },
}


SDK_OF = {"ecs_agent.__main__": "botocore.client"}  # which asks AWS from its first moment on


class Sam:
    """Writes what `sam build` would, and counts."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self.builds = 0
        self.exit_code = 0

    def run(self, _name: str, _command: Any, _environment: Any) -> int:
        self.builds += 1
        into = self._checkout / ".sandpiper" / "build"
        (into / "Api").mkdir(parents=True, exist_ok=True)
        shutil.copy(self._checkout / "functions" / "handler.py", into / "Api")
        (into / "Layer").mkdir(exist_ok=True)
        (into / "Layer" / "package.py").write_text("x = 1\n")
        (into / "template.yaml").write_text(yaml.safe_dump(BUILT))
        return self.exit_code


class Checkout:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.sam = Sam(root)
        self.bundles = 0

    @contextmanager
    def bundle(self) -> Iterator[Path]:
        parts: Any = self.sam
        with up_to_date_bundle(parts, StateDir(self.root / "state"), {}, region="us-east-1") as directory:
            yield directory

    @property
    def work_done(self) -> tuple[int, int]:
        return self.sam.builds, self.bundles


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    made = Checkout(tmp_path)

    def counted(*args: Any, **options: Any) -> None:
        made.bundles += 1
        make_bundle(*args, **options)

    monkeypatch.setattr(build, "make_bundle", counted)
    for name, value in {"REPOSITORY": tmp_path, "BUILD": tmp_path / ".sandpiper"}.items():
        monkeypatch.setattr(paths, name, value)
    monkeypatch.setattr(paths, "LAYERS", tmp_path / ".sandpiper" / "layers")
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "handler.py").write_text("1\n")
    (tmp_path / "local" / "src" / "sandpiper_local" / "template").mkdir(parents=True)
    return made


def test_the_second_stack_finds_what_the_first_one_made(checkout: Checkout) -> None:
    with checkout.bundle() as directory:
        first = dict(objects(directory))
    with checkout.bundle() as directory:
        assert dict(objects(directory)) == first
    assert checkout.work_done == (1, 1)
    assert TEMPLATE in first


def test_a_changed_source_is_built_and_bundled_anew(checkout: Checkout) -> None:
    with checkout.bundle():
        (checkout.root / "functions" / "handler.py").write_text("2\n")
    with checkout.bundle() as directory:
        assert any(b"2\n" in content for _, content in objects(directory))
    assert checkout.work_done == (2, 2)


def test_a_changed_adapter_bundles_the_same_build_anew(checkout: Checkout) -> None:
    with checkout.bundle():
        (checkout.root / "local" / "src" / "sandpiper_local" / "template" / "adapter.py").write_text("new\n")
    with checkout.bundle():
        assert checkout.work_done == (1, 2)


def test_a_bundle_whose_layers_were_cleared_away_is_made_anew(checkout: Checkout) -> None:
    with checkout.bundle():
        shutil.rmtree(paths.LAYERS)
    with checkout.bundle():
        assert checkout.work_done == (1, 2)
        assert list(paths.LAYERS.iterdir())


def test_a_bundle_that_was_left_half_made_is_made_anew(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_built: Path, directory: Path, **_options: Any) -> None:
        directory.mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build, "make_bundle", interrupted)
        with pytest.raises(KeyboardInterrupt), checkout.bundle():
            pass
    with checkout.bundle() as directory:
        assert (directory / TEMPLATE).exists()


def test_a_build_that_fails_is_tried_again(checkout: Checkout) -> None:
    checkout.sam.exit_code = 1
    with pytest.raises(BuildFailed), checkout.bundle():
        pass
    checkout.sam.exit_code = 0
    with checkout.bundle():
        assert checkout.sam.builds == 2


def test_an_unknown_parameter_is_refused_by_name(checkout: Checkout) -> None:
    nobody: Any = None
    with checkout.bundle() as directory, pytest.raises(DeployFailed, match="has no parameter Stagge"):
        deploy(nobody, directory, {"Stagge": "prod"})


@pytest.mark.parametrize("module", ["stack", "front_door.__main__", "scripted_model.__main__", "ecs_agent.__main__"])
def test_no_part_of_the_stack_loads_a_translator_or_boto3_to_start(module: str) -> None:
    slow = {"samtranslator", "jsonschema", "boto3", "s3transfer"} | ({"botocore.client"} - {SDK_OF.get(module)})
    code = f"import sys, sandpiper_local.{module}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & slow

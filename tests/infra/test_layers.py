"""What a function imports is in its layers: an emulator that runs it in its own interpreter would not notice."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from typing import TYPE_CHECKING, Any

import pytest
from packaging.markers import Marker
from packaging.utils import canonicalize_name

from tests.infra.imports import reachable
from tests.infra.sources import CORE, FUNCTIONS, ROLES, ROOT, function, properties, template

if TYPE_CHECKING:
    from collections.abc import Mapping

REQUIREMENTS = (ROOT / "layers/deps/requirements.txt").read_text()
PINNED = dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", REQUIREMENTS, re.MULTILINE))
OURS = {"sandpiper", *(path.name for path in FUNCTIONS.iterdir() if path.is_dir())}


def test_every_function_gets_both_layers_and_the_code_that_its_handler_names() -> None:
    shared = template()["Globals"]["Function"]
    assert shared["Layers"] == [{"Ref": "CoreLayer"}, {"Ref": "DepsLayer"}]
    assert (shared["CodeUri"], shared["Runtime"]) == ("functions/", "python3.13")
    assert not any("Layers" in function(role) for role in ROLES)
    assert properties("CoreLayer")["ContentUri"] == str(CORE.relative_to(ROOT))


@pytest.fixture(scope="module")
def providers() -> Mapping[str, list[str]]:
    """By module, the packages that bring it. To find out takes a while."""
    return packages_distributions()


@pytest.mark.parametrize("role", ROLES)
def test_a_function_imports_only_what_its_layers_and_python_hold(role: str, providers: Mapping[str, list[str]]) -> None:
    names = {module.split(".")[0] for module in reachable(f"{role}.handler").outside}
    missing = {
        name
        for name in names - sys.stdlib_module_names
        if not {canonicalize_name(found) for found in providers.get(name, [])} & PINNED.keys()
    }
    assert not missing


@pytest.mark.parametrize("role", ROLES)
def test_a_function_imports_no_module_of_ours_that_does_not_exist(role: str) -> None:
    assert not {module for module in reachable(f"{role}.handler").outside if module.split(".")[0] in OURS}


@pytest.mark.parametrize("role", ROLES)
def test_no_function_imports_the_anthropic_sdk_or_the_fakes(role: str) -> None:
    found = reachable(f"{role}.handler")
    assert not {module for module in found.outside if module.startswith("anthropic")}
    assert not {module for module in found.inside if module.startswith("sandpiper.testing")}


def test_the_layer_pins_what_the_lock_file_resolved_for_the_functions() -> None:
    locked = _locked()
    wanted = list(locked["sandpiper"]["dev-dependencies"]["functions"])
    assert {name: locked[name]["version"] for name in _closure(locked, wanted)} == PINNED


def test_every_pin_is_held_to_the_hashes_of_the_lock_file() -> None:
    locked = _locked()
    for pin in re.split(r"\n(?=[a-z])", REQUIREMENTS.strip()):
        name = pin.split("==")[0]
        files = [locked[name]["sdist"], *locked[name]["wheels"]] if "sdist" in locked[name] else locked[name]["wheels"]
        hashes = set(re.findall(r"--hash=(sha256:[0-9a-f]{64})", pin))
        assert hashes, name
        assert hashes <= {file["hash"] for file in files}, name


def test_the_requirements_name_no_package_index() -> None:
    assert not re.search(r"https?://|--index|--extra-index|--find-links", REQUIREMENTS)


def _locked() -> dict[str, dict[str, Any]]:
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    return {package["name"]: package for package in lock["package"]}


def _closure(locked: dict[str, dict[str, Any]], wanted: list[dict[str, Any]]) -> set[str]:
    names: set[str] = set()
    while wanted:
        dependency = wanted.pop()
        package = locked[dependency["name"]]
        extras = [package["optional-dependencies"][extra] for extra in dependency.get("extra", [])]
        if dependency["name"] in names and not extras:
            continue
        names.add(dependency["name"])
        more = [*package.get("dependencies", []), *(extra for found in extras for extra in found)]
        wanted += [found for found in more if found["name"] not in names and _applies(found)]
    return names


def _applies(dependency: dict[str, Any]) -> bool:
    return "marker" not in dependency or Marker(dependency["marker"]).evaluate({"python_full_version": "3.13.0"})

"""Imports point inward: handlers → logic → ports. And nothing that is deployed knows where it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.infra.imports import imports, modules
from tests.infra.sources import CORE, FUNCTIONS, ROOT, SANDBOX_TASK

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = CORE / "sandpiper"
INNER = [
    *modules(PACKAGE / "logic"),
    *modules(PACKAGE / "models"),
    PACKAGE / "ports.py",
    PACKAGE / "github_ports.py",
    PACKAGE / "errors.py",
]
OUTWARD = re.compile(r"sandpiper\.(adapters|testing)|boto3|botocore|aws_lambda_powertools|os$|os\.")
DEPLOYED = [ROOT / "functions", ROOT / "layers", ROOT / "sandbox-task"]


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", INNER, ids=_name)
def test_rules_and_models_import_no_adapter_no_sdk_and_no_environment(path: Path) -> None:
    assert not {name for name in imports(path) if OUTWARD.match(name)}


@pytest.mark.parametrize("path", list(modules(PACKAGE / "models")), ids=_name)
def test_models_import_no_rules(path: Path) -> None:
    assert not {name for name in imports(path) if name.startswith(("sandpiper.logic", "sandpiper.ports"))}


@pytest.mark.parametrize("path", list(modules(PACKAGE)), ids=_name)
def test_the_core_package_imports_neither_functions_nor_the_sandbox(path: Path) -> None:
    outer = {folder.name for folder in FUNCTIONS.iterdir() if folder.is_dir()} | {"sandbox_task"}
    assert not {name for name in imports(path) if name.split(".")[0] in outer}


@pytest.mark.parametrize("path", list(modules(PACKAGE / "adapters")), ids=_name)
def test_adapters_read_no_environment(path: Path) -> None:
    assert "os.environ" not in path.read_text()


@pytest.mark.parametrize("path", list(modules(FUNCTIONS)), ids=_name)
def test_a_function_imports_no_other_function(path: Path) -> None:
    own = path.relative_to(FUNCTIONS).parts[0]
    others = {folder.name for folder in FUNCTIONS.iterdir() if folder.is_dir()} - {own, "shared"}
    assert not {name for name in imports(path) if name.split(".")[0] in others}


@pytest.mark.parametrize("path", [*modules(FUNCTIONS), *modules(PACKAGE), *modules(SANDBOX_TASK)], ids=_name)
def test_every_package_marker_is_empty(path: Path) -> None:
    assert path.name != "__init__.py" or not path.read_text().strip()


@pytest.mark.parametrize("folder", DEPLOYED, ids=_name)
def test_nothing_that_is_deployed_knows_of_an_embedded_aws(folder: Path) -> None:
    told = re.compile(r"ministack|localstack|\bis_local\b|//localhost|localhost:", re.IGNORECASE)
    files = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert not [_name(path) for path in files if told.search(path.read_text(errors="replace"))]

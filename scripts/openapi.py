"""Writes docs/openapi.json from the routes: `python scripts/openapi.py`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from api.app import app
from api.document import openapi_document

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "openapi.json"


def rendered() -> str:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    return json.dumps(openapi_document(app, version), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(rendered())
    print(f"wrote {DOCUMENT.relative_to(ROOT)}")

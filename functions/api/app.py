"""The application with all its routes."""

from __future__ import annotations

from typing import Any

from api import routes_control, routes_execute, routes_github, routes_quotas, routes_runs, routes_service
from api.document import openapi_document
from api.errors import ErrorAnswers
from api.requests import CurrentWorld  # noqa: TC001 - Powertools reads it from the signature
from api.resolver import Api

app = Api()
for routes in (routes_execute, routes_runs, routes_control, routes_github, routes_quotas, routes_service):
    app.include_router(routes.router)
ErrorAnswers(app).register()


@app.get("/openapi.json", include_in_schema=False)
def describe(world: CurrentWorld) -> dict[str, Any]:
    return openapi_document(app, world.version)

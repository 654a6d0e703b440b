"""/quotas: what a user or an organization may start and spend. For admins."""

from typing import Annotated

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from api.requests import Caller, CurrentWorld
from api.resolver import new_router
from api.views import quota_view
from sandpiper import limits
from sandpiper.logic.quotas import require_admin
from sandpiper.models.quota import Quota, Scope
from sandpiper.models.requests import QuotaRequest
from sandpiper.models.responses import QuotaAnswer

logger = Logger()
router = new_router()

UserName = Annotated[str, Path(min_length=1, max_length=limits.MAX_USER_CHARS, description="`sub` of their token")]
OrgName = Annotated[str, Path(min_length=1, max_length=limits.MAX_USER_CHARS, description="`org` of its tokens")]
NewLimits = Annotated[QuotaRequest, Body()]


@router.get("/quotas/users/<user>", summary="Quotas of a user", operation_id="getUserQuota", tags=["quotas"])
def get_user_quota(user: UserName, world: CurrentWorld, caller: Caller) -> QuotaAnswer:
    require_admin(caller)
    return QuotaAnswer(quota=quota_view(world, Scope("user", user)))


@router.put("/quotas/users/<user>", summary="Set quotas of a user", operation_id="setUserQuota", tags=["quotas"])
def set_user_quota(user: UserName, body: NewLimits, world: CurrentWorld, caller: Caller) -> QuotaAnswer:
    require_admin(caller)
    logger.info("quota set", scope="user", name_of_scope=user, limits=body.model_dump(), by=caller.user)
    world.line.set_limits(Scope("user", user), Quota(**body.model_dump()))
    return QuotaAnswer(quota=quota_view(world, Scope("user", user)))


@router.get("/quotas/orgs/<org>", summary="Quotas of an organization", operation_id="getOrgQuota", tags=["quotas"])
def get_org_quota(org: OrgName, world: CurrentWorld, caller: Caller) -> QuotaAnswer:
    require_admin(caller)
    return QuotaAnswer(quota=quota_view(world, Scope("org", org)))


@router.put("/quotas/orgs/<org>", summary="Set quotas of an organization", operation_id="setOrgQuota", tags=["quotas"])
def set_org_quota(org: OrgName, body: NewLimits, world: CurrentWorld, caller: Caller) -> QuotaAnswer:
    require_admin(caller)
    logger.info("quota set", scope="org", name_of_scope=org, limits=body.model_dump(), by=caller.user)
    world.line.set_limits(Scope("org", org), Quota(**body.model_dump()))
    return QuotaAnswer(quota=quota_view(world, Scope("org", org)))

"""The policy of one run, from the settings, this image's package managers and the base commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sandbox_task.isolation.egress.clients import learn_registries
from sandbox_task.isolation.egress.ecosystems import find_ecosystems
from sandbox_task.isolation.egress.policy import Policy, make_policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sandbox_task.settings import Settings


class FindPolicy(Protocol):
    """Once the base commit is known."""

    def __call__(self, *, paths: Iterable[str], egress: Iterable[str]) -> Policy: ...


def policy_for_run(
    settings: Settings,
    requested: Iterable[str],
    *,
    paths: Iterable[str],
    egress: Iterable[str],
    environ: Mapping[str, str],
) -> Policy:
    """`requested` is the request's `egress`; `paths` and `egress` are the base commit's."""
    ecosystems = find_ecosystems(paths)
    learned = learn_registries(ecosystems, environ)
    return make_policy(
        ecosystems=ecosystems,
        registries={name: [*settings.egress_registries.get(name, ()), *learned[name]] for name in ecosystems},
        github_url=settings.github_url,
        requested=requested,
        egress=egress,
        allowed=settings.egress_allowed,
        private=settings.egress_private,
    )

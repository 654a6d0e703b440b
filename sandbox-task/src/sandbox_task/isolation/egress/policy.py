"""What a run may reach: what it needs and asks for, cut down to what the operator allows. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace
from ipaddress import ip_network
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from sandbox_task.isolation.egress.addresses import Address, Network, is_public, needs_a_network
from sandbox_task.isolation.egress.hosts import HTTPS, Pattern, is_name, is_number, parse_pattern, parse_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Exceptions:
    """Where names may lead to although it is not public."""

    names: tuple[Pattern, ...] = ()
    networks: tuple[Network, ...] = ()

    def cover(self, host: str, port: int, address: Address) -> bool:
        if any(address.version == network.version and address in network for network in self.networks):
            return True
        return not needs_a_network(address) and any(name.matches(host, port) for name in self.names)


@dataclass(frozen=True)
class Policy:
    """Nothing is reachable unless it is both wanted by the run and allowed by the operator.

    `is_bounded`: the operator has said what is allowed; else it is what nobody but people and the image have named."""

    wanted: tuple[Pattern, ...] = ()
    allowed: tuple[Pattern, ...] = ()
    exceptions: Exceptions = Exceptions()
    is_bounded: bool = False

    def refusal(self, host: str, port: int) -> str | None:
        """Why a host can't be asked for; None if it can."""
        if is_number(host):
            return "addresses can't be used, only names"
        if not is_name(host):
            return "this is no name of a host"
        if not any(pattern.matches(host, port) for pattern in self.wanted):
            return f"port {port} of it is not among what this run may reach; `egress` of the request can name it"
        if not any(pattern.matches(host, port) for pattern in self.allowed):
            return f"the operator does not allow port {port} of it"
        return None

    def opened(self, host: str, port: int) -> Policy:
        """Also for this host, because a person wants it: as far as the operator allows."""
        new = (Pattern(host, port, below=False),)
        return replace(self, wanted=self.wanted + new, allowed=self.allowed + (() if self.is_bounded else new))

    def address_refusal(self, host: str, port: int, addresses: Iterable[Address]) -> str | None:
        """Why what the name stands for can't be dialled. One bad address spoils the name."""
        for address in addresses:
            if not is_public(address) and not self.exceptions.cover(host, port, address):
                return "its name leads to an address that is not public"
        return None


def make_policy(
    *,
    ecosystems: Iterable[str],
    registries: Mapping[str, Iterable[str]],
    github_url: str,
    requested: Iterable[str] = (),
    egress: Iterable[str] = (),
    allowed: Iterable[str],
    private: Iterable[str],
) -> Policy:
    """`requested` is what the person asks for who started the run, `egress` what the base commit's options do. Where
    the operator has set no bound (`allowed`), what the repository says of itself opens nothing.

    Raises ValueError that names what is wrong."""
    hosts = [host for ecosystem in sorted(ecosystems) for host in registries.get(ecosystem, ())]
    trusted = [*hosts, *hosts_of([github_url]), *requested]
    bound = parse_patterns(allowed)
    return Policy(
        wanted=parse_patterns([*trusted, *egress]),
        allowed=bound or parse_patterns(trusted),
        exceptions=parse_exceptions(private),
        is_bounded=bool(bound),
    )


def hosts_of(urls: Iterable[str]) -> list[str]:
    """`host` or `host:port` of those https URLs that have a name in them."""
    parts = [urlsplit(url) for url in urls]
    named = [part for part in parts if part.scheme == "https" and is_name(part.hostname or "")]
    return [f"{part.hostname}:{part.port or HTTPS}" for part in named]


def parse_exceptions(texts: Iterable[str]) -> Exceptions:
    """Each is a network (`10.1.0.0/16`) or a pattern of names."""
    names, networks = [], []
    for text in texts:
        if "/" in text:
            networks.append(ip_network(text.strip()))
        else:
            names.append(parse_pattern(text))
    return Exceptions(tuple(names), tuple(networks))

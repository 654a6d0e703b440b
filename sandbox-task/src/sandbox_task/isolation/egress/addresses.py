"""Which addresses a name may stand for: those of the public internet, and what the operator excepts."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAT64 = IPv6Network("64:ff9b::/96")
# Global by the book, but never a server of the public internet: a cloud's own agent, relays, what is not given out.
_NEVER_PUBLIC = tuple(
    ip_network(network)
    for network in ("168.63.129.16/32", "192.88.99.0/24", "2001::/32", "2002::/16", "::/3", "4000::/2", "8000::/1")
)
# Too dangerous to come with the exception of a name: whoever answers for the name would choose the target.
_BY_NETWORK_ONLY = tuple(
    ip_network(network)
    for network in (
        *("127.0.0.0/8", "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "168.63.129.16/32", "100.100.100.200/32"),
        *("::1/128", "::/128", "fe80::/10", "ff00::/8", "fd00:ec2::/32"),
    )
)


def parse_address(text: str) -> Address:
    """Without a zone, and an IPv4 address that is wrapped in IPv6 as what it is."""
    address = ip_address(text.partition("%")[0])
    return _unwrapped(address) if isinstance(address, IPv6Address) else address


def is_public(address: Address) -> bool:
    return address.is_global and not address.is_multicast and not _within(address, _NEVER_PUBLIC)


def needs_a_network(address: Address) -> bool:
    """Whether only an exception that names the network opens it."""
    return _within(address, _BY_NETWORK_ONLY)


def _unwrapped(address: IPv6Address) -> Address:
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address


def _within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)

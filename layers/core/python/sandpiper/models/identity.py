"""Who is asking."""

from sandpiper.models.base import Model


class Identity(Model):
    user: str
    org: str | None = None
    scopes: frozenset[str] = frozenset()
    # Whose runs are this one's, too: on GitHub, everybody who may write to a repository may steer what was asked there.
    acts_for: str | None = None

"""The model's SDK, with what it would otherwise build when its first reply comes. See `import_early`."""

from __future__ import annotations

from typing import get_args

from anthropic.types import RawMessageStreamEvent

_UNION = get_args(RawMessageStreamEvent)[0]
for _event in get_args(_UNION):
    _event.model_rebuild()

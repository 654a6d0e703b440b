from __future__ import annotations

import pytest

from sandpiper_local.errors import BadSetting
from sandpiper_local.startup import BACKENDS, check_environment
from tests.infra.sources import template


@pytest.mark.parametrize("environment", [{}, {"SANDPIPER_SANDBOX": ""}, {"SANDPIPER_SANDBOX": "uid"}])
def test_a_backend_that_we_have_or_none_is_taken(environment: dict[str, str]) -> None:
    check_environment(environment)


def test_a_backend_that_we_do_not_have_is_named_with_its_variable() -> None:
    with pytest.raises(BadSetting, match="SANDPIPER_SANDBOX is 'dokcer': it must be bwrap or uid") as caught:
        check_environment({"SANDPIPER_SANDBOX": "dokcer"})
    assert caught.value.exit_code == 2


def test_the_backends_are_those_of_the_template() -> None:
    assert list(BACKENDS) == template()["Parameters"]["SandboxBackend"]["AllowedValues"]

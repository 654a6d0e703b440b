"""`python -m tests.security.container COMMAND…`: with the rights of an ordinary container, and no more.

Docker's fourteen capabilities, and what its seccomp profile refuses. What Fargate gives a task.
"""

from __future__ import annotations

import os
import shutil
import sys

from sandbox_task.isolation.kernel import refuse_calls
from tests.security.docker_profile import docker_filter

CAPABILITIES = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap"),
    *("net_bind_service", "net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"),
)
_KEPT = "-all," + ",".join(f"+{name}" for name in CAPABILITIES)


def main(command: list[str]) -> None:
    """The filter first: it takes a right that is dropped next, or else no program could ever gain one."""
    refuse_calls(docker_filter(os.uname().machine))
    setpriv = shutil.which("setpriv") or "/usr/bin/setpriv"
    os.execv(setpriv, [setpriv, f"--bounding-set={_KEPT}", f"--inh-caps={_KEPT}", "--", *command])  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    main(sys.argv[1:])

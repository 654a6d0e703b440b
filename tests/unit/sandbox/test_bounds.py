from __future__ import annotations

import os
from typing import TYPE_CHECKING

from sandbox_task.isolation.bounds import disk as disk_module
from sandbox_task.isolation.bounds.disk import Disk
from sandbox_task.isolation.bounds.quota import Quota
from sandbox_task.isolation.bounds.usage import bytes_below
from sandpiper import limits

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MIB = 1024**2


def test_a_quota_is_exceeded_once_and_again_only_by_more() -> None:
    quota = Quota(100, slack=5)
    said = [quota.exceeded(used) for used in (90, 100, 101, 101, 105, 107, 60, 100, 101)]
    assert said == [False, False, True, False, False, True, False, False, True]


def test_who_frees_space_beyond_the_quota_is_left_alone() -> None:
    quota = Quota(100, slack=0)
    assert [quota.exceeded(used) for used in (200, 190, 150, 151)] == [True, False, False, True]
    assert quota.is_full


def test_files_are_counted_once_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").write_bytes(bytes(8 * MIB))
    (tmp_path / "in" / "file").write_bytes(bytes(MIB))
    (tmp_path / "in" / "again").hardlink_to(tmp_path / "in" / "file")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    assert MIB <= bytes_below([tmp_path / "in"], at_most=1 << 40) < 2 * MIB


def test_holes_take_no_space_and_empty_files_take_some(tmp_path: Path) -> None:
    with (tmp_path / "hole").open("wb") as file:
        os.truncate(file.fileno(), 1 << 32)
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert 101 * 4096 <= bytes_below([tmp_path], at_most=1 << 40) < MIB


def test_counting_stops_when_it_is_enough(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).write_bytes(bytes(MIB))
    assert bytes_below([tmp_path], at_most=3 * MIB) < 5 * MIB


def test_a_directory_that_is_gone_counts_nothing(tmp_path: Path) -> None:
    assert bytes_below([tmp_path / "gone"], at_most=1) == 0


def test_a_disk_that_is_nearly_full_is_told_in_words(tmp_path: Path) -> None:
    disk = Disk([tmp_path], quota=1 << 50, reserve=1 << 60)
    assert "nearly full" in (disk.complaint() or "")
    assert disk.is_full


def test_more_than_the_quota_is_told_once_with_the_quota(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(8 * MIB))
    disk = Disk([tmp_path], quota=4 * MIB, reserve=0)
    assert "more than 0.00391 GiB" in (disk.complaint() or "")
    assert disk.is_full


def test_files_are_not_counted_while_little_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr(disk_module, "_REST", 0)
    monkeypatch.setattr(disk_module, "bytes_below", lambda *_, **__: counted.append(1) or 0)
    used = [0, limits.WALL_DISK_STEP_BYTES - 1, limits.WALL_DISK_STEP_BYTES]
    monkeypatch.setattr(disk_module, "space", lambda _: (used.pop(0), 1 << 50, 1 << 50))
    disk = Disk([tmp_path], quota=MIB, reserve=0)
    for _ in range(3):
        disk.complaint()
    assert len(counted) == 2

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from persistent_bfs import cache
from persistent_bfs.toolchain import CompileError

NAME = "kernel-0123456789abcdef01234567.so"
OTHER = "kernel-fedcba9876543210fedcba98.cubin"
BINARY = b"\x7fELF, and more of it"
FACTS = {"compiler": "g++", "release": [13, 0]}

HOUR = 3600.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    wanted = tmp_path / "parent" / "cache"
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(wanted))
    monkeypatch.delenv(cache.LIMIT_VARIABLE, raising=False)
    yield wanted
    forget()


def forget() -> None:
    """What another process would know of the cache."""
    cache._known.clear()
    cache._chosen.clear()


def publish(name: str = NAME, binary: bytes = BINARY) -> Path:
    with cache.work_folder("kernel") as work:
        made = work / "made"
        made.write_bytes(binary)
        return cache.publish(name, made, FACTS)


def test_an_entry_is_the_binary_and_what_is_known_of_it(folder: Path) -> None:
    assert cache.find(NAME) is None
    assert publish() == folder / NAME == cache.find(NAME)
    for _ in range(2):
        assert (folder / NAME).read_bytes().startswith(BINARY)
        assert cache.facts(folder / NAME) == FACTS
        forget()
    assert [file.name for file in folder.iterdir()] == [NAME]


@pytest.mark.parametrize("kept", [0, 1, len(BINARY), -1, -30, -60])
def test_a_truncated_entry_is_as_good_as_none(folder: Path, kept: int) -> None:
    path = publish()
    path.write_bytes(path.read_bytes()[:kept])
    for _ in range(2):
        assert cache.find(NAME) is None
        assert cache.facts(path) == {}
        forget()
    assert cache.find(publish().name) == path


@pytest.mark.parametrize("place", [0, len(BINARY) + 3, -1, -9, -20, -48])
def test_one_wrong_byte_is_seen(folder: Path, place: int) -> None:
    path = publish()
    content = bytearray(path.read_bytes())
    content[place] ^= 0x10
    path.write_bytes(content)
    assert cache.find(NAME) is None


def test_a_file_that_is_no_entry_is_none(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / NAME).write_bytes(BINARY * 100)
    assert cache.find(NAME) is None
    (folder / NAME).unlink()
    (folder / NAME).mkdir()
    assert cache.find(NAME) is None


def test_what_was_read_whole_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    path = publish()
    cache.find(NAME)
    monkeypatch.setattr(cache, "_facts_of", lambda _: pytest.fail("read again"))
    assert cache.find(NAME) == path


def test_the_content_is_on_the_disk_before_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    for call in ("fsync", "replace"):
        real = getattr(os, call)

        def noted(*arguments: object, call: str = call, real: object = real) -> None:
            done.append(call)
            real(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(os, call, noted)
    publish()
    assert done == ["fsync", "replace"]


def test_an_empty_binary_is_not_published(folder: Path) -> None:
    with pytest.raises(CompileError, match="left nothing of"):
        publish(binary=b"")
    assert not list(folder.iterdir())


def test_a_full_disk_is_one_line_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CompileError, match=r"No space left on device.*make room, or set"):
        publish()
    assert not list(folder.iterdir())


def test_discarded_is_gone() -> None:
    path = publish()
    cache.discard(path)
    assert cache.find(NAME) is None
    cache.discard(path)  # by another process


# Who may have written it.

posix = pytest.mark.skipif(os.name != "posix", reason="no permissions to speak of")


def status(mode: int, uid: int) -> os.stat_result:
    return os.stat_result((mode, 1, 1, 1, uid, 0, 1, 1, 1, 1))


@posix
@pytest.mark.parametrize(
    ("mode", "uid", "trusted"),
    [
        (0o755, 1000, True),
        (0o700, 1000, True),
        (0o644, 0, True),  # the system's
        (0o755, 1001, False),
        (0o775, 1000, False),
        (0o757, 1000, False),
        (0o1777, 0, False),  # /tmp itself
    ],
)
def test_files_are_trusted_that_only_this_user_and_root_write(
    mode: int, uid: int, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert (cache._distrust(status(mode, uid)) is None) is trusted


@posix
def test_root_trusts_no_other_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache._distrust(status(0o755, 0)) is None
    assert cache._distrust(status(0o755, 1000)) == "it belongs to another user (1000)"


@posix
def test_what_is_made_is_this_users_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        path = publish()
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert cache.find(NAME) == path


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_write_to_is_not_used(folder: Path, mode: int) -> None:
    path = publish()
    folder.chmod(mode)
    forget()
    assert cache.find(NAME) is None
    assert not cache.any_of(".so")
    with pytest.warns(UserWarning, match=r"cache is not safe, others .* \(chmod go-w\); set"):
        another = publish()
    assert another.parent != folder
    assert cache.find(NAME) == another
    assert cache.any_of(".so")
    folder.chmod(0o700)
    forget()
    assert cache.find(NAME) == path


@posix
def test_an_entry_that_others_write_to_is_compiled_anew(folder: Path) -> None:
    path = publish()
    path.chmod(0o664)
    with pytest.warns(UserWarning, match=r"compiled anew: others than its owner can write to it"):
        assert cache.find(NAME) is None
    publish()
    assert cache.find(NAME) == path


def test_a_folder_that_is_only_read_gives_what_it_has(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish()
    forget()
    monkeypatch.setattr(cache, "folder_problem", lambda folder: f"cannot write to {folder} (no)")
    assert cache.find(NAME) == path  # and not a warning
    with pytest.warns(UserWarning, match="set PERSISTENT_BFS_CACHE_DIR to a folder of your own"):
        another = publish(OTHER)
    assert another.parent != folder
    assert (cache.find(NAME), cache.find(OTHER)) == (path, another)


def test_a_folder_that_cannot_be_is_said_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(blocked / "cache"))
    with pytest.warns(UserWarning, match="compiled anew each time: cannot write to"):
        folder = cache.cache_folder()
    assert folder.is_dir()
    assert cache.cache_folder() == folder
    assert not list(folder.iterdir())
    folder.rmdir()


# Its bound.


def of_age(name: str, hours: float, mebibytes: float = 0.4) -> Path:
    path = publish(name, bytes(int(mebibytes * 2**20)))
    then = time.time() - hours * HOUR
    os.utime(path, (then, then))
    return path


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Entries last used 3, 2 and 1 hours ago: more than the limit that holds from now on."""
    names = [f"kernel-{digit * 24}.so" for digit in "abc"]
    paths = [of_age(name, hours) for name, hours in zip(names, (3, 2, 1), strict=True)]
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "1")
    forget()
    return paths


def there(paths: list[Path]) -> list[bool]:
    return [path.exists() for path in paths]


def test_the_least_recently_used_goes_first(three: list[Path]) -> None:
    newest = publish()
    assert there([*three, newest]) == [False, True, True, True]
    assert sum(entry.size for entry in cache.entries(newest.parent)) <= 2**20


def test_a_use_keeps_an_entry(three: list[Path]) -> None:
    assert cache.find(three[0].name) == three[0]
    forget()  # another process knows it by its time of use only
    publish()
    assert there(three) == [True, False, True]


def test_what_this_process_uses_stays(three: list[Path]) -> None:
    assert cache.facts(three[0]) == FACTS
    publish()
    assert there(three) == [True, False, True]


def test_what_was_just_used_stays_though_it_is_too_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "0")
    first = publish()
    forget()
    assert there([publish(OTHER), first]) == [True, True]


@pytest.mark.parametrize("text", ["-1", "1.5", "lots", "1G", "٣"])
def test_a_limit_that_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.LIMIT_VARIABLE, text)
    with pytest.raises(CompileError, match=r"PERSISTENT_BFS_CACHE_LIMIT is .*a number of MiB"):
        publish()
    assert cache.find(NAME) is None


def test_the_limit_is_in_mebibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache.limit_bytes() == 1024 * 2**20
    monkeypatch.setenv(cache.LIMIT_VARIABLE, "3")
    assert cache.limit_bytes() == 3 * 2**20


def test_what_killed_processes_left_goes_after_a_day(folder: Path) -> None:
    publish()
    for name, hours in ((".kernel-abcdefgh", 25), (".kernel-hgfedcba", 1), (".git", 1000)):
        (folder / name).mkdir()
        then = time.time() - hours * HOUR
        os.utime(folder / name, (then, then))
    publish(OTHER)
    assert {file.name for file in folder.iterdir()} == {NAME, OTHER, ".kernel-hgfedcba", ".git"}


def test_clearing_leaves_what_is_not_the_caches(folder: Path) -> None:
    sizes = {publish(name).stat().st_size for name in (NAME, OTHER)}
    (folder / "notes.txt").write_text("mine")
    (folder / "kernel.so").write_text("mine, too")
    gone = cache.clear(folder)
    assert {entry.path.name for entry in gone} == {NAME, OTHER}
    assert {entry.size for entry in gone} == sizes
    assert sorted(file.name for file in folder.iterdir()) == ["kernel.so", "notes.txt"]
    assert cache.find(NAME) is None
    assert cache.clear(folder) == cache.clear(folder / "nowhere") == []

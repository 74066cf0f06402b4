"""Files are replaced as a whole, links stay, streams are written directly, and nobody's file is taken for a draft."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from heedful.atomic_write import atomic_write, create_temporary
from heedful.errors import TraceError


def write(path: Path, text: str) -> None:
    with atomic_write(path, TraceError) as draft:
        draft.write_text(text)


def test_a_file_is_replaced_and_no_draft_is_left(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    write(path, "old")
    write(path, "new")
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_exception_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    write(path, "old")

    def fail_halfway() -> None:
        with atomic_write(path, TraceError) as draft:
            draft.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_users_file_with_a_draft_like_name_stays(tmp_path: Path) -> None:
    own = tmp_path / "t.tmp.json"
    own.write_text("mine")
    write(tmp_path / "t.json", "new")
    assert own.read_text() == "mine"


def test_a_draft_is_never_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "t.tmp.json").symlink_to(victim)
    write(tmp_path / "t.json", "new")
    assert victim.read_text() == "mine"


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "real.json", tmp_path / "link.json"
    target.write_text("old")
    link.symlink_to(target)
    write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert [path.name for path in target.parent.iterdir()] == ["real.json"]


def test_a_named_pipe_is_written_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    texts: list[str] = []
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text()))
    reader.start()
    write(pipe, "through")
    reader.join(10)
    assert texts == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device() -> None:
    device = Path("/dev/null")
    with atomic_write(device, TraceError) as draft:
        assert draft == device  # fails inside the block: otherwise a test run by root would replace the device
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_file_behind_a_device_link_is_written_and_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "redirected").open("w") as file:  # as with `-o /dev/stdout > redirected`
        write(Path(f"/dev/fd/{file.fileno()}"), "new")
        assert os.fstat(file.fileno()).st_ino == (tmp_path / "redirected").stat().st_ino
    assert (tmp_path / "redirected").read_text() == "new"


def test_nobody_can_know_the_name_of_a_draft(tmp_path: Path) -> None:
    names = set()
    for _ in range(3):
        draft = create_temporary(tmp_path / "t.json")
        names.add(draft.name)
        draft.unlink()
    assert len(names) == 3


def test_a_draft_that_exists_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(["taken", "free"])
    monkeypatch.setattr("heedful.atomic_write.secrets.token_hex", lambda _: next(numbers))
    (tmp_path / ".t.taken.tmp.json").write_text("mine")
    write(tmp_path / "t.json", "new")
    assert (tmp_path / ".t.taken.tmp.json").read_text() == "mine"
    assert (tmp_path / "t.json").read_text() == "new"


def test_permissions_of_an_existing_file_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text("old")
    path.chmod(0o640)
    write(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write(tmp_path / "t.json", "new")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "t.json").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("name", ["missing/t.json", "folder"])
def test_what_cannot_be_written_is_said_with_its_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(TraceError, match=f"{name}: cannot be written: (No such file|Is a directory)"):
        write(tmp_path / name, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]

"""What is solved: kept through crashes, rivals and damage, shown per chapter."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch.nn.functional as F

import normlab
from normlab.exercises import Code, Pattern, progress

TEXTS = {"question": "What?", "hints": ["a nudge", "nearly all"]}
SETS = Pattern("6.1", answer="N (G [C/G]) [H W]", **TEXTS)
GROUP_NORM = Code("6.2", norm="group_norm", name="group_norm", solution="", **TEXTS)


@pytest.fixture
def file(tmp_path, monkeypatch):
    file = tmp_path / "deep" / "progress.json"
    monkeypatch.setenv("NORMLAB_PROGRESS", str(file))
    return file


def test_only_what_is_solved_is_kept(file):
    SETS.check("N C [H W]")
    SETS.check(...)
    assert not file.exists()
    SETS.check("N (G [C/G]) [H W]")
    assert [*progress.solved()] == ["6.1"]
    day = json.loads(file.read_text())["solved"]["6.1"]
    assert time.strptime(day, "%Y-%m-%d")


def test_a_later_wrong_answer_does_not_undo_it(file):
    progress.record("6.1")
    SETS.check("N C [H W]")
    assert "6.1" in progress.solved()


def test_the_result_is_the_same_before_and_after(file):
    first, second = (GROUP_NORM.check(F.group_norm) for _ in range(2))
    assert repr(first) == repr(second)
    assert first._repr_html_() == second._repr_html_()


def test_it_shows_what_is_solved_per_chapter(file):
    progress.record("6.1")
    shown = normlab.progress()
    line = next(
        line for line in repr(shown).splitlines() if line.startswith("Chapter 6")
    )
    total = len(normlab.exercises.chapters()[6])
    assert line.startswith(f"Chapter 6: 1 of {total} solved  ✓ 6.1  · 6.2")
    html = shown._repr_html_()
    assert f"<td>1 of {total}</td>" in html
    assert "✓ 6.1" in html


def test_nothing_solved_is_shown_too(file):
    shown = repr(normlab.progress())
    assert "✓" not in shown
    assert "Chapter 6: 0 of " in shown


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"solved": 3}',
        '{"solved": {"6.1": 1}}',
        "\x00\xff",
        pytest.param("[" * 200_000, id="nested deeply"),
    ],
)
def test_a_damaged_file_is_set_aside(file, content):
    file.parent.mkdir()
    file.write_bytes(content.encode("latin-1"))
    assert progress.solved() == {}
    progress.record("6.2")
    assert [*progress.solved()] == ["6.2"]
    (aside,) = file.parent.glob("progress.damaged-*.json")
    assert aside.read_bytes() == content.encode("latin-1")


def test_a_place_that_cannot_be_written_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "a file"
    blocked.write_text("in the way")
    monkeypatch.setenv("NORMLAB_PROGRESS", str(blocked / "progress.json"))
    assert SETS.check("N (G [C/G]) [H W]").correct
    assert progress.solved() == {}
    assert f"Progress is off: {blocked} is not a folder." in repr(normlab.progress())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes on this system")
@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("make", [os.mkdir, getattr(os, "mkfifo", None)])
def test_what_is_no_regular_file_is_left_alone(make, linked, tmp_path, monkeypatch):
    place = tmp_path / "place"
    make(place)
    before = place.lstat()
    if linked:
        (tmp_path / "link").symlink_to(place)
    monkeypatch.setenv("NORMLAB_PROGRESS", str(tmp_path / "link" if linked else place))
    names = {one.name for one in tmp_path.iterdir()}
    assert SETS.check("N (G [C/G]) [H W]").correct
    assert progress.solved() == {}
    after = place.lstat()
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)
    assert {one.name for one in tmp_path.iterdir()} == names
    shown = normlab.progress()
    sentence = f"Progress is off: {place} is not a regular file. Let NORMLAB_PROGRESS"
    assert repr(shown).startswith(sentence)
    assert sentence in shown._repr_html_()


def test_a_link_stays_and_its_target_is_written(tmp_path, monkeypatch):
    link, target = tmp_path / "link.json", tmp_path / "elsewhere" / "real.json"
    link.symlink_to(target)
    monkeypatch.setenv("NORMLAB_PROGRESS", str(link))
    for number in ("6.1", "6.2"):
        progress.record(number)
        assert link.is_symlink()
        assert number in json.loads(target.read_text())["solved"]
    target.write_text("damaged")
    progress.record("6.3")
    assert link.is_symlink()
    assert [*progress.solved()] == ["6.3"]
    (aside,) = target.parent.glob("real.damaged-*.json")
    assert aside.read_text() == "damaged"


def test_finished_and_open_quizzes_are_shown(file):
    progress.record("quiz 6")
    shown = normlab.progress()
    lines = repr(shown).splitlines()
    assert next(x for x in lines if x.startswith("Chapter 6")).endswith("  ✓ quiz 6")
    assert next(x for x in lines if x.startswith("Chapter 7")).endswith("  · quiz 7")
    assert "Chapter 6: 0 of " in repr(shown)  # a quiz is not counted as an exercise
    assert "✓ quiz 6" in shown._repr_html_()
    assert not repr(shown).startswith("Progress is off")


def test_a_crash_while_writing_leaves_the_old_file(file, monkeypatch):
    progress.record("6.1")

    def crash(*args):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", crash)
    progress.record("6.2")
    assert [*progress.solved()] == ["6.1"]


def test_kernels_do_not_lose_each_others_entries(file):
    code = (
        "import sys; from importlib.util import spec_from_file_location as s, "
        "module_from_spec as m; spec = s('progress', sys.argv[1]); p = m(spec); "
        "spec.loader.exec_module(p); "
        "[p.record(f'{sys.argv[2]}.{i}') for i in range(25)]"
    )
    # by path, so that no kernel waits for torch
    arguments = [sys.executable, "-c", code, progress.__file__]
    kernels = [subprocess.Popen([*arguments, str(k)]) for k in range(4)]
    assert [kernel.wait(60) for kernel in kernels] == [0] * 4
    assert len(progress.solved()) == 100
    assert {f.name for f in file.parent.iterdir()} == {"progress.json"}


def test_the_lock_of_a_dead_kernel_is_broken(file):
    file.parent.mkdir()
    lock = file.with_name("progress.json.lock")
    lock.touch()
    os.utime(lock, (0, 0))
    progress.record("6.1")
    assert "6.1" in progress.solved()
    assert not lock.exists()


def test_a_lock_that_stays_does_not_stop_the_record(file, monkeypatch):
    file.parent.mkdir()
    lock = file.with_name("progress.json.lock")
    lock.touch()
    monkeypatch.setattr(progress, "PATIENCE", 0.05)
    progress.record("6.1")
    assert "6.1" in progress.solved()
    assert lock.exists()


@pytest.mark.parametrize(
    ("platform", "names", "expected"),
    [
        ("linux", {}, ".local/share/normlab/progress.json"),
        ("linux", {"XDG_DATA_HOME": "/x"}, "/x/normlab/progress.json"),
        ("darwin", {}, "Library/Application Support/normlab/progress.json"),
        ("win32", {}, "AppData/Local/normlab/progress.json"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/normlab/progress.json"),
    ],
)
def test_the_file_is_where_the_system_keeps_such_data(
    platform, names, expected, monkeypatch
):
    for name in ("NORMLAB_PROGRESS", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in names.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert progress.path() == Path.home() / expected

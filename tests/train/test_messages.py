from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tqdm.auto import tqdm

from pyg_pool.train.messages import keep_messages, show_messages

LOG = logging.getLogger("pyg_pool.train.loop")


@pytest.mark.parametrize(("bars", "epochs"), [(True, 0), (False, 1)])
def test_epochs_are_shown_without_bars_only(
    bars: bool, epochs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with show_messages(bars=bars):
        LOG.debug("epoch 1")
        LOG.info("finished")
    LOG.info("later")
    shown = capsys.readouterr().err
    assert shown.count("epoch 1") == epochs
    assert shown.count("finished") == 1
    assert "later" not in shown


def test_messages_do_not_break_bars(capsys: pytest.CaptureFixture[str]) -> None:
    with show_messages(bars=True), tqdm(total=2, desc="run", ncols=60) as bar:
        bar.update()
        LOG.info("finished")
        bar.update()
    lines = capsys.readouterr().err.replace("\r", "\n").splitlines()
    assert "finished" in [line.strip() for line in lines]


def test_file_is_appended_to(tmp_path: Path) -> None:
    for word in ("first", "second"):
        with keep_messages(tmp_path / "train.log"):
            LOG.debug(word)
    LOG.debug("third")
    lines = (tmp_path / "train.log").read_text().splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["first", "second"]


def test_level_is_put_back() -> None:
    room = logging.getLogger("pyg_pool.train")
    before = (room.level, list(room.handlers))
    with show_messages(bars=False):
        assert room.isEnabledFor(logging.DEBUG)
    assert (room.level, list(room.handlers)) == before

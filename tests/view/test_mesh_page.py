"""The page of a mesh: complete in itself, and alive in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from pyg_pool.mesh import PART_NAMES, Mesh, generate_shape
from pyg_pool.view import write_mesh_page

pytest.importorskip("plotly")

POT = generate_shape("pot", generator=torch.Generator().manual_seed(0))
GUESS = np.where(np.arange(POT.num_faces) < 40, 2, POT.labels)
LEVELS = [np.arange(POT.num_faces) // 4, np.arange(POT.num_faces) // 40]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "pot.html"
    write_mesh_page(
        path, POT, prediction=GUESS, clusters=LEVELS, names=PART_NAMES,
        title="A <pot> & </script>",
    )  # fmt: skip
    return path


def content(path: Path) -> dict:
    found = re.search(r"^const data = (.*);$", path.read_text("utf-8"), re.MULTILINE)
    return json.loads(found.group(1))


def test_page_holds_all_layers_at_all_levels(page: Path) -> None:
    data = content(page)
    assert np.array(data["faces"]).T.tolist() == POT.faces.tolist()
    assert len(data["points"][0]) == POT.num_vertices
    assert np.ptp(data["points"], axis=1).max() == pytest.approx(1, abs=1e-4)
    assert [level["count"] for level in data["levels"]] == [648, 162, 17]
    labels = ["input", "truth", "prediction", "errors"]
    assert list(data["levels"][0]["layers"]) == labels
    assert list(data["levels"][2]["layers"]) == [*labels, "clusters"]
    finest = data["levels"][0]["layers"]
    assert finest["prediction"]["values"] == GUESS.tolist()
    assert sum(finest["errors"]["values"]) == (POT.labels != GUESS).sum()
    coarse = np.array(data["levels"][2]["layers"]["prediction"]["values"])
    assert all(len(set(coarse[LEVELS[1] == i])) == 1 for i in range(17))
    errors = np.array(data["levels"][2]["layers"]["errors"]["values"])
    truth = np.array(data["levels"][2]["layers"]["truth"]["values"])
    assert np.array_equal(errors, coarse != POT.labels)
    assert not np.array_equal(truth, POT.labels)


def test_lines_run_between_clusters(page: Path) -> None:
    for level, cluster in enumerate(LEVELS, start=1):
        lines = content(page)["levels"][level]["lines"]
        sides = {}
        for face, corners in enumerate(POT.faces.tolist()):
            for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
                sides.setdefault((min(a, b), max(a, b)), set()).add(cluster[face])
        expected = sorted(list(side) for side, own in sides.items() if len(own) > 1)
        assert sorted(lines) == expected


def test_page_asks_for_nothing_from_outside(page: Path) -> None:
    text = page.read_text("utf-8")
    own = text.replace(re.search(r"<script>.{1000000,}?</script>", text, re.S)[0], "")
    assert "://" not in own
    assert not re.search(r"<(link|img|iframe|script)[^>]*(src|href)=", own)
    assert "<title>A &lt;pot&gt; &amp; &lt;/script&gt;</title>" in own
    assert [each.name for each in page.parent.iterdir()] == ["pot.html"]


@pytest.mark.parametrize("mesh", [Mesh([], []), Mesh([[0, 0, 0]], [], labels=[])])
def test_empty_mesh_gives_a_page(tmp_path: Path, mesh: Mesh) -> None:
    write_mesh_page(tmp_path / "a.html", mesh)
    assert content(tmp_path / "a.html")["faces"] == [[], [], []]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"level 1 of shape \[1\] .* 648 faces"):
        write_mesh_page(tmp_path / "a.html", POT, clusters=[[0]])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(BROWSER is None, reason="no chromium on the path")
@pytest.mark.parametrize(
    ("start", "level", "layer"),
    [
        ("", "0", "truth"),
        ("#layer=prediction&level=1", "1", "prediction"),
        ("#layer=clusters&level=2", "2", "clusters"),
    ],
)
def test_browser_draws_the_chosen_layer(
    page: Path, tmp_path: Path, start: str, level: str, layer: str
) -> None:
    # No network: a page that asked for anything would not become ready.
    done = subprocess.run(
        [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu-sandbox",
            "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
            f"--user-data-dir={tmp_path}", "--host-resolver-rules=MAP * ~NOTFOUND",
            "--virtual-time-budget=20000", "--dump-dom", f"{page.as_uri()}{start}",
        ],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    body = re.search(r"<body[^>]*>", done.stdout)
    assert body is not None, done.stderr[-2000:]
    assert 'data-state="ready"' in body[0]
    assert f'data-level="{level}"' in body[0]
    assert f'data-layer="{layer}"' in body[0]
    assert "<canvas" in done.stdout
    chips = re.findall(r'class="chip">.*?</i>([^<]*)<', done.stdout)
    texts = {"truth": r"body: .* %", "prediction": r"body: .* %"}
    assert re.match(texts[layer], chips[0]) if layer in texts else chips == []

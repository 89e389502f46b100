"""A mesh to turn in a browser: one page that needs nothing else, no network either.

The page holds the plotting script, the mesh, its labels and the clusters of every
level. Two lists choose what is coloured and at which level: at a coarse level every
cluster shows the commonest label of its faces, and lines mark where clusters meet.
"""

from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pyg_pool.errors import check_choice, require
from pyg_pool.view.mesh import Up
from pyg_pool.view.mesh_colours import (
    Layer,
    cluster_layer,
    face_values,
    make_layers,
    smoothed_by_cluster,
)

if TYPE_CHECKING:
    from pyg_pool.mesh import Mesh

__all__ = ["write_mesh_page"]

Ints = NDArray[np.int64]


def write_mesh_page(
    path: str | os.PathLike[str],
    mesh: Mesh,
    *,
    truth: ArrayLike | None = None,
    prediction: ArrayLike | None = None,
    clusters: Sequence[ArrayLike] = (),
    names: Sequence[str] | None = None,
    title: str = "Mesh",
    up: Up = "z",
) -> None:
    """Write an HTML page that shows a mesh, its labels and its clusters.

    Args:
        path: File to write; an existing one is replaced at the end.
        mesh: The mesh.
        truth: Class of each face; by default the labels of the mesh.
        prediction: Predicted class of each face.
        clusters: For each level the cluster of each face of the mesh.
        names: What the classes are called.
        title: Heading of the page.
        up: Axis that points up.

    Shapes:
        truth, prediction, clusters: [T] int each.

    Raises:
        ImportError: If plotly is not installed.
        ValueError: If labels or clusters do not fit the mesh.

    Note:
        About 5 MB for the script and 100 bytes per face. The address may end in
        ``#layer=prediction&level=1`` to open the page there.
    """
    check_choice("write_mesh_page", "up", up, ("x", "y", "z"))
    script = require("plotly.offline", "view").get_plotlyjs()
    size = len(mesh.faces)
    levels = [face_values(c, size, f"level {i}") for i, c in enumerate(clusters, 1)]
    layers = make_layers(mesh, truth, prediction, names)
    data = _page_data(mesh, layers, levels, up)
    # A closing tag inside a text would end the script.
    text = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    page = _PAGE
    for mark, content in (
        ("@title@", html.escape(title)),
        ("@data@", text),
        ("@plotly@", script),
    ):
        page = page.replace(mark, content)
    target = Path(path)
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        part.write_text(page, encoding="utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _page_data(
    mesh: Mesh, layers: list[Layer], levels: list[Ints], up: Up
) -> dict[str, Any]:
    """Return everything that the page draws, as plain numbers and texts."""
    order = {"z": [0, 1, 2], "y": [2, 0, 1], "x": [1, 2, 0]}[up]
    points = np.asarray(mesh.vertices)[:, order]
    used = points[np.unique(mesh.faces)] if len(mesh.faces) else points
    if len(used):
        centre = (used.max(axis=0) + used.min(axis=0)) / 2
        extent = float((used.max(axis=0) - used.min(axis=0)).max())
        points = (points - centre) / (extent or 1.0)
    parts = np.arange(len(mesh.faces))
    shown = []
    for level, cluster in enumerate([parts, *levels]):
        own = [
            Layer(
                layer.name,
                layer.values if level == 0 else smoothed(layer, layers, cluster),
                layer.colours,
                layer.texts,
            )
            for layer in layers
        ]
        if level > 0:
            own.append(cluster_layer("clusters", cluster))
        shown.append(
            {
                "count": len(np.unique(cluster)),
                "lines": _borders(mesh, cluster) if level > 0 else [],
                "layers": {layer.name: _packed(layer) for layer in own},
            }
        )
    return {
        "points": np.round(points, 5).T.tolist(),
        "faces": np.asarray(mesh.faces).T.tolist(),
        "levels": shown,
    }


def smoothed(layer: Layer, layers: Sequence[Layer], cluster: Ints) -> Ints:
    """Return a layer as the clusters of a level show it."""
    if layer.name != "errors":
        return smoothed_by_cluster(layer.values, cluster)
    # What the clusters' predictions get wrong, not the commonest of the errors.
    by_name = {each.name: each.values for each in layers}
    guess = smoothed_by_cluster(by_name["prediction"], cluster)
    return (guess != by_name["truth"]).astype(np.int64)


def _packed(layer: Layer) -> dict[str, Any]:
    """Return a layer as plain values; equal colours are stored once."""
    share = {}
    if layer.texts:
        counts = np.bincount(layer.values, minlength=len(layer.colours))
        share = {"counts": counts.tolist()}
    return {
        "values": layer.values.tolist(),
        "colours": list(layer.colours),
        "texts": list(layer.texts),
        **share,
    }


def _borders(mesh: Mesh, cluster: Ints) -> list[list[int]]:
    """Return the ends of the edges between faces of different clusters."""
    faces = np.asarray(mesh.faces)
    sides = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    owner = np.tile(cluster, 3)
    low, high = sides.min(axis=1), sides.max(axis=1)
    order = np.lexsort((owner, high, low))
    low, high, owner = low[order], high[order], owner[order]
    same = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    border = np.flatnonzero(same & (owner[1:] != owner[:-1]))
    ends: list[list[int]] = np.stack([low[border], high[border]], axis=1).tolist()
    return ends


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>@title@</title>
<style>
  html, body { margin: 0; height: 100%; }
  body { display: flex; flex-direction: column; color: #1f2933;
         font: 15px/1.4 system-ui, sans-serif; background: #fff; }
  header { display: flex; flex-wrap: wrap; gap: 8px 20px; align-items: baseline;
           padding: 12px 18px; border-bottom: 1px solid #e4e7ec; }
  h1 { font-size: 18px; margin: 0 12px 0 0; }
  label { color: #52606d; }
  select { font: inherit; margin-left: 6px; padding: 2px 6px; }
  #count { color: #52606d; margin-left: auto; }
  #plot { flex: 1; min-height: 0; }
  #legend { display: flex; flex-wrap: wrap; gap: 6px 18px; padding: 10px 18px;
            min-height: 22px; border-top: 1px solid #e4e7ec; }
  .chip { display: inline-flex; align-items: center; gap: 7px; }
  .chip i { width: 14px; height: 14px; border-radius: 3px; }
</style>
</head>
<body>
<header>
  <h1>@title@</h1>
  <label>Colours <select id="layer"></select></label>
  <label>Level <select id="level"></select></label>
  <label><input type="checkbox" id="lines" checked> cluster borders</label>
  <span id="count"></span>
</header>
<div id="plot"></div>
<div id="legend"></div>
<script>@plotly@</script>
<script>
"use strict";
const data = @data@;
const get = id => document.getElementById(id);
const [layer, level, lines] = ["layer", "level", "lines"].map(get);

function option(list, value, text) {
  const item = document.createElement("option");
  item.value = value;
  item.textContent = text;
  list.append(item);
}
data.levels.forEach((each, i) => option(level, i, i === 0
  ? "0: faces" : `${i}: ${each.count.toLocaleString("en")} clusters`));

function offerLayers(wanted) {
  layer.replaceChildren();
  const names = Object.keys(data.levels[level.value].layers);
  names.forEach(name => option(layer, name, name));
  layer.value = names.includes(wanted) ? wanted : names[names.length > 1 ? 1 : 0];
}

function faceColours(shown) {
  return shown.values.map(value => shown.colours[value]);
}

function borders(ends) {
  const out = [[], [], []];
  for (const [a, b] of ends)
    data.points.forEach((axis, k) => out[k].push(axis[a], axis[b], null));
  return out;
}

function legend(shown) {
  const chips = shown.texts.map((text, i) => {
    const chip = document.createElement("span");
    const colour = document.createElement("i");
    chip.className = "chip";
    colour.style.background = shown.colours[i];
    const share = 100 * shown.counts[i] / Math.max(shown.values.length, 1);
    const name = text.replace(/ \\(.*\\)$/, "");
    chip.append(colour, `${name}: ${share.toFixed(1)} %`);
    return shown.counts[i] > 0 ? chip : null;
  });
  get("legend").replaceChildren(...chips.filter(chip => chip));
}

async function show() {
  document.body.dataset.state = "busy";
  const now = data.levels[level.value], shown = now.layers[layer.value];
  const [x, y, z] = borders(lines.checked ? now.lines : []);
  await Plotly.restyle("plot", {facecolor: [faceColours(shown)]}, [0]);
  await Plotly.restyle("plot", {x: [x], y: [y], z: [z]}, [1]);
  legend(shown);
  get("count").textContent =
    `${data.faces[0].length.toLocaleString("en")} faces`;
  Object.assign(document.body.dataset,
    {state: "ready", level: level.value, layer: layer.value});
  history.replaceState(null, "", `#layer=${layer.value}&level=${level.value}`);
}

const start = new URLSearchParams(location.hash.slice(1));
level.value = data.levels[start.get("level")] ? start.get("level") : 0;
offerLayers(start.get("layer"));
level.addEventListener("change", () => { offerLayers(layer.value); show(); });
layer.addEventListener("change", show);
lines.addEventListener("change", show);

const [px, py, pz] = data.points, [i, j, k] = data.faces;
const hidden = {visible: false, showspikes: false};
Plotly.newPlot("plot", [
  {type: "mesh3d", x: px, y: py, z: pz, i, j, k, flatshading: true,
   hoverinfo: "skip", facecolor: faceColours(data.levels[0].layers.input),
   lighting: {ambient: 0.55, diffuse: 0.7, specular: 0.08, roughness: 0.9},
   lightposition: {x: 2000, y: -3000, z: 4000}},
  {type: "scatter3d", mode: "lines", x: [], y: [], z: [], hoverinfo: "skip",
   line: {color: "#1f2933", width: 3}, showlegend: false},
], {
  margin: {l: 0, r: 0, t: 0, b: 0}, showlegend: false,
  scene: {aspectmode: "data", xaxis: hidden, yaxis: hidden, zaxis: hidden,
          dragmode: "orbit", camera: {eye: {x: 0.8, y: -1.1, z: 0.55}}},
}, {responsive: true, displaylogo: false}).then(show).catch(error => {
  document.body.dataset.state = "failed";
  get("legend").textContent = `This browser cannot draw in 3-D: ${error}`;
});
</script>
</body>
</html>
"""

"""Learns to tell the parts of vessels: body, foot, lid and handle of generated meshes.

Run: ``python examples/mesh_segmentation.py`` (about a minute; ``--smoke`` is shorter).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch

from pyg_pool.mesh import PART_NAMES, generate_shape, generate_shapes, primal_dual_graph
from pyg_pool.train import (
    MeshConfig,
    MeshSet,
    load_mesh_model,
    predict_mesh,
    train_meshes,
)

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--smoke", action="store_true", help="a few seconds only")
parser.add_argument("--out", type=Path, help="folder for the run and the page")
args = parser.parse_args()
out = args.out or Path(tempfile.mkdtemp(prefix="mesh_segmentation_"))

# %% Meshes. Each is turned into two graphs: faces, and the edges between them.
number = 4 if args.smoke else 48
chance = torch.Generator().manual_seed(3)
shapes = generate_shapes(number + number // 2, generator=chance)
graphs = [primal_dual_graph(shape) for shape in shapes]
vessels = MeshSet("vessels", list(PART_NAMES), graphs[:number], graphs[number:])

# %% Training: a U-Net that merges faces and brings the labels back to each of them.
config = MeshConfig(
    data="generated",
    task="segmentation",
    channels=(16, 32) if args.smoke else (32, 48, 64),
    epochs=1 if args.smoke else 12,
    batch_size=4 if args.smoke else 8,
    lr=4e-3,
    constant_epochs=6,
)
summary = train_meshes(config, out / "run", sets=[vessels], progress=not args.smoke)
run = summary.runs[0]
print(f"faces with the right label: {run.test_score:.1%} (test meshes)")
print(f"the same by area:           {run.area_weighted:.1%}")
print(f"most frequent label:        {run.majority:.1%}")

# %% A mesh that the network has not seen, with its clusters of faces per level.
model = load_mesh_model(out / "run" / "seed0" / "last.ckpt")
pot = generate_shape("pot", generator=torch.Generator().manual_seed(99))
found = predict_mesh(model, pot)
right = float((found.labels == pot.labels).mean())
print(f"a new pot: {right:.1%} of {pot.num_faces} faces right, {found.counts}")
print("clusters per level:", [int(level.max()) + 1 for level in found.clusters])

# %% A page to turn the pot, with truth, prediction and clusters.
if not args.smoke:
    from pyg_pool.view import write_mesh_page

    write_mesh_page(
        out / "pot.html",
        pot,
        prediction=found.labels,
        clusters=found.clusters,
        names=list(PART_NAMES),
    )
    print("written:", out / "pot.html")

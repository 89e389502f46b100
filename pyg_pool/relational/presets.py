"""Subgraph networks from the literature as settings of one network.

Each is a handful of options of :class:`pyg_pool.models.KLGNN`.
"""

from __future__ import annotations

from typing import Any

from pyg_pool.errors import check_choice

__all__ = ["PRESETS", "preset_options", "wl_options"]

_EGO: dict[str, Any] = {"l": 1, "ego": 3}

#: Options by name. The radius 3 and the pools are choices; pass others beside them.
PRESETS: dict[str, dict[str, Any]] = {
    # M. Zhang, P. Li. Nested Graph Neural Networks. NeurIPS 2021.
    "ngnn": {**_EGO, "encoding": "spd", "node_pool": "mean", "tuple_pool": "sum"},
    # J. You et al. Identity-aware Graph Neural Networks. AAAI 2021.
    "id_gnn": {**_EGO, "readout": "root", "tuple_pool": "sum"},
    # L. Zhao et al. From Stars to Subgraphs. ICLR 2022.
    "gnn_ak": {**_EGO, "encoding": "spd", "context": ("root", "copy")},
    "gnn_ak_ctx": {**_EGO, "encoding": "spd", "context": ("root", "copy", "node")},
    # B. Bevilacqua et al. Equivariant Subgraph Aggregation Networks. ICLR 2022.
    "ds_mark": {"l": 1},
    "ds_ego": {**_EGO, "encoding": "none"},
    "ds_ego_plus": dict(_EGO),
    "ds_delete_node": {"l": 1, "policy": "delete_node"},
    "ds_delete_edge": {"l": 1, "policy": "delete_edge"},
    "dss_mark": {"l": 1, "context": ("node",)},
    "dss_ego": {**_EGO, "encoding": "none", "context": ("node",)},
    "dss_ego_plus": {**_EGO, "context": ("node",)},
    "dss_delete_node": {"l": 1, "policy": "delete_node", "context": ("node",)},
    "dss_delete_edge": {"l": 1, "policy": "delete_edge", "context": ("node",)},
    # F. Frasca et al. Understanding and Extending Subgraph GNNs. NeurIPS 2022.
    "sun": {**_EGO, "encoding": "spd", "context": ("root", "copy", "node")},
    # B. Zhang et al. A Complete Expressiveness Hierarchy for Subgraph GNNs. ICML 2023.
    "sswl": {"l": 1, "encoding": "spd", "context": ("across",)},
    "sswl_plus": {"l": 1, "encoding": "spd", "context": ("across", "root")},
    # Y. Huang et al. Boosting the Cycle Counting Power of GNNs with I2-GNNs. 2023.
    "i2_gnn": {
        "l": 2,
        "domain": "star",
        "ego": 3,
        "encoding": "spd",
        "nested": ("sum", "mean"),
    },
    # C. Qian et al. Ordered Subgraph Aggregation Networks. NeurIPS 2022.
    "osan": {"l": 2, "domain": "distinct"},
    # H. Maron et al. Provably Powerful Graph Networks. NeurIPS 2019.
    "ppgn": {"k": 2, "l": 0},
    # C. Zhou, X. Wang, M. Zhang. From Relational Pooling to Subgraph GNNs. ICML 2023.
    "id_mpnn": {"l": 2, "domain": "subset", "streams": "two"},
    "id_ppgn": {"k": 2, "l": 1},
}


def preset_options(name: str) -> dict[str, Any]:
    """Returns the options of a named network, a new dictionary each time.

    Args:
        name: One of :data:`PRESETS`.

    Raises:
        ValueError: If there is no such name.

    Example:
        >>> from pyg_pool.relational import preset_options
        >>> preset_options("id_gnn")
        {'l': 1, 'ego': 3, 'readout': 'root', 'tuple_pool': 'sum'}
    """
    check_choice("preset_options", "name", name, PRESETS)
    return dict(PRESETS[name])


def wl_options(name: str) -> dict[str, Any]:
    """Returns options of ``kl_wl`` that bound what a named network can separate.

    Networks that read other copies are bounded on whole copies: balls only weaken
    them.

    Raises:
        ValueError: If there is no such name.

    Example:
        >>> from pyg_pool.relational import wl_options
        >>> wl_options("sswl")["update"]
        'SSWL'
    """
    given = preset_options(name)
    context = given.get("context", ())
    out: dict[str, Any] = {
        "k": given.get("k", 1),
        "l": given.get("l", 1),
        "folklore": given.get("k", 1) == 2,
        "domain": given.get("domain", "distinct"),
        "pooling": given.get("readout", "tuple"),
        "ego": given.get("ego"),
        "policy": given.get("policy", "mark"),
        "update": None,
    }
    if given.get("encoding") == "none" and out["ego"] is not None:
        out["policy"] = "none"
    if "nested" in given:
        out["pooling"] = "nested"
    if context and out["policy"] in ("mark", "none"):
        words = ("across", "node", "root")
        tests = {"across": "SSWL", "node": "DSS", "root": "PSWL"}
        out["update"] = next(tests[word] for word in words if word in context)
        out.update(ego=None, policy="mark")
    return out

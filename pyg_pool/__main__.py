"""``python -m pyg_pool`` is the command ``pyg-pool``."""

from __future__ import annotations

from pyg_pool.cli import main

if __name__ == "__main__":
    main()

"""What the host's Python takes for a step of torch.optim.Muon, a matrix (optimizer_host.py). Matrices are so small that
arithmetic is nothing.

    python bench/muon-host.py        # with torch 2.13
"""

import torch

from optimizer_host import RANKS, report

SHAPES = {"more rows than columns, 11 collectives": (16, 8), "as many, 16 collectives": (8, 8),
          "fewer, 16 collectives": (8, 16)}

report(torch.optim.Muon, {name: ((rows, columns), (rows // RANKS, columns)) for name, (rows, columns) in SHAPES.items()})

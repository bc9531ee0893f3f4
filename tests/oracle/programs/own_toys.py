"""The recorder's own toys, as any module: what a program of this folder defines of one."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recorder"))

import networks
from building_blocks import Shape


def program(preset):
    """TOKENS, BLOCKS, model and batch."""
    shape = Shape(**networks.PRESETS[preset], checkpointing="none")
    blocks = tuple(c.__name__ for c in networks.KINDS[shape.kind].block_classes)
    return shape.seq, blocks, lambda: networks.make_network(shape), lambda n: networks.make_batch(shape, n, None)

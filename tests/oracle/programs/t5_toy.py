"""The recorder's own t5-toy, as any module."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "recorder"))

import networks
from building_blocks import Shape

SHAPE = Shape(**networks.PRESETS["t5-toy"], checkpointing="none")
TOKENS = SHAPE.seq
BLOCKS = tuple(c.__name__ for c in networks.KINDS[SHAPE.kind].block_classes)


def model():
    return networks.make_network(SHAPE)


def batch(n):
    return networks.make_batch(SHAPE, n, None)

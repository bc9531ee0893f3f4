"""The recorder's own t5-toy, as any module."""

from own_toys import program

TOKENS, BLOCKS, model, batch = program("t5-toy")

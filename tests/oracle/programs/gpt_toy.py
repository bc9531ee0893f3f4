"""The recorder's own gpt-toy, as any module."""

from own_toys import program

TOKENS, BLOCKS, model, batch = program("gpt-toy")

"""The recorder's own llama-toy, as any module."""

from own_toys import program

TOKENS, BLOCKS, model, batch = program("llama-toy")

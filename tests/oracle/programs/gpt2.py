"""GPT-2, as any module: large enough that a GPU computes most of the time."""

from own_toys import program

TOKENS, BLOCKS, model, batch = program("gpt2")

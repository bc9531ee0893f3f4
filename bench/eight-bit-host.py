"""What the host's Python takes for a step of torchao's AdamW8bit, a parameter (optimizer_host.py): torch.compile finds the
program that it has compiled by looking whether each parameter's tensors are as they were. Of 4096 numbers in 8 bits a part of
it is the CPU's arithmetic; of 64 numbers it is nothing.

    python bench/eight-bit-host.py        # with torch 2.13 and torchao 0.18
"""

from torchao.optim import AdamW8bit

from optimizer_host import report

report(AdamW8bit, {"states in 8 bits": ((64, 64), (64, 64)), "states as they are": ((8, 8), (8, 8))})

"""Attention whose keys and values come of one short row a token ("multi-head latent attention", DeepSeek-V2 and V3).

The operations, their order and the names that hold their results are those of torchtitan's (torchtitan/models/deepseek_v3/model.py
at 0014ac2c, 2026, and apply_rotary_emb_single_complex of models/common/rope.py): q through a short row too, or straight; of
each of its heads the last numbers turned, as pairs of complex numbers in fp32; one row of kv_lora_rank numbers, which a norm
takes, and a key behind it that is turned and seen by all heads; both joined head by head. What attention is given has heads
of two lengths, so a GPU without cuDNN's kernel for them takes the memory-efficient one (fake_gpu.py)."""

import torch
from torch import nn

from building_blocks import attend, make_rms_norm, merge_heads


def turned(x, turns):
    """x: (batch, seq, heads, numbers); turns: (seq, numbers / 2)."""
    dtype = x.dtype
    x = torch.view_as_complex(x.float().view(*x.shape[:-1], -1, 2))
    y = torch.view_as_real(x * turns.view(1, turns.size(0), 1, turns.size(1))).flatten(3)
    return y.to(dtype)


class LatentAttention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.of_q = [shape.qk_nope_head_dim, shape.qk_rope_head_dim]
        self.of_kv = [shape.kv_lora_rank, shape.qk_rope_head_dim]
        self.of_heads = [shape.qk_nope_head_dim, shape.v_head_dim]
        rank, wide = shape.q_lora_rank, shape.heads * sum(self.of_q)
        if rank:
            self.q_a = nn.Linear(shape.width, rank, bias=False)
            self.q_norm = make_rms_norm(shape, 1e-5, rank)
            self.q_b = nn.Linear(rank, wide, bias=False)
        else:
            self.q = nn.Linear(shape.width, wide, bias=False)
        self.kv_a = nn.Linear(shape.width, sum(self.of_kv), bias=False)
        self.kv_norm = make_rms_norm(shape, 1e-5, shape.kv_lora_rank)
        self.kv_b = nn.Linear(shape.kv_lora_rank, shape.heads * sum(self.of_heads), bias=False)
        self.o = nn.Linear(shape.heads * shape.v_head_dim, shape.width, bias=False)

    def forward(self, x, cos, sin):
        batch, seq, _ = x.shape
        if self.shape.q_lora_rank:
            q = self.q_a(x)
            q = self.q_b(self.q_norm(q))
        else:
            q = self.q(x)
        q = q.view(batch, seq, -1, sum(self.of_q))
        plain, placed = torch.split(q, self.of_q, dim=-1)
        placed = turned(placed, cos)
        q = torch.cat([plain, placed], dim=-1)
        kv = self.kv_a(x)
        kv, key = torch.split(kv, self.of_kv, dim=-1)
        key = turned(key.unsqueeze(2), cos)
        kv = self.kv_b(self.kv_norm(kv))
        kv = kv.view(batch, seq, -1, sum(self.of_heads))
        plain_k, v = torch.split(kv, self.of_heads, dim=-1)
        k = torch.cat([plain_k, key.expand(-1, -1, self.shape.heads, -1)], dim=-1)
        y = merge_heads(attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), self.shape, causal=True,
                               scale=self.shape.attention_scale or None))
        return self.o(y)

"""Decoders with LayerNorm and a hidden layer without a gate: starcoder2, opt, neox (GPT-NeoX, Pythia) and phi,
op by op as transformers 4.53's modeling files of these names have them, the modules' names and order too.

Kept simple where no tensor of a token's width differs: positions are made once for all sequences (as here in gpt),
tables of rotary embedding are buffers (as here in llama), and what a block returns is no tuple."""

import torch
import torch.nn.functional as F
from torch import nn

from building_blocks import Block, Network, attend, merge_heads


def norm_of(shape):
    return nn.LayerNorm(shape.width, bias=shape.bias)


def linear(shape, inside, outside):
    return nn.Linear(inside, outside, bias=shape.bias)


def in_heads(x, shape):
    return x.unflatten(2, (-1, shape.head_dim)).transpose(1, 2)


def gelu_of(shape, x):
    if shape.gelu == "ops":
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))
    return F.gelu(x, approximate=shape.gelu)


# ---- rotary embedding ----------------------------------------------------------------------------

def half_turned(x):
    lower, upper = x[..., :x.size(-1) // 2], x[..., x.size(-1) // 2:]
    return torch.cat((-upper, lower), dim=-1)


def turn_both(q, k, cos, sin):
    return q * cos + half_turned(q) * sin, k * cos + half_turned(k) * sin


def turn_parts(q, k, cos, sin):
    """The first numbers of each head are turned, as many as the tables have."""
    n = cos.size(-1)
    q_part, q_rest = q[..., :n], q[..., n:]
    k_part, k_rest = k[..., :n], k[..., n:]
    q_turned = q_part * cos + half_turned(q_part) * sin
    k_turned = k_part * cos + half_turned(k_part) * sin
    q_turned = torch.cat([q_turned, q_rest], dim=-1)
    k_turned = torch.cat([k_turned, k_rest], dim=-1)
    return q_turned, k_turned


class Rotary(Network):
    def make_tables(self, shape):
        dim = int(shape.head_dim * shape.rotary_share)
        steps = torch.arange(0, dim, 2).float() / dim
        angles = torch.outer(torch.arange(shape.seq).float(), shape.rope_base ** -steps)
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def tables(self, tokens, x):
        return (t[:tokens.size(1)].to(x.dtype) for t in (self.cos, self.sin))


# ---- starcoder2 ----------------------------------------------------------------------------------

class Starcoder2Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.q_proj = linear(shape, shape.width, shape.heads * shape.head_dim)
        self.k_proj = linear(shape, shape.width, shape.kv_heads * shape.head_dim)
        self.v_proj = linear(shape, shape.width, shape.kv_heads * shape.head_dim)
        self.o_proj = linear(shape, shape.heads * shape.head_dim, shape.width)

    def forward(self, x, cos, sin):
        q, k, v = (in_heads(p(x), self.shape) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = turn_both(q, k, cos, sin)
        return self.o_proj(merge_heads(attend(q, k, v, self.shape, causal=True)))


class Starcoder2Mlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.c_fc = linear(shape, shape.width, shape.ffn)
        self.c_proj = linear(shape, shape.ffn, shape.width)

    def forward(self, x):
        return self.c_proj(gelu_of(self.shape, self.c_fc(x)))


class Starcoder2Block(Block):
    def __init__(self, shape):
        super().__init__(shape)
        self.self_attn = Starcoder2Attention(shape)
        self.mlp = Starcoder2Mlp(shape)
        self.input_layernorm = norm_of(shape)
        self.post_attention_layernorm = norm_of(shape)

    def compute(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Starcoder2(Rotary):
    block_classes = (Starcoder2Block,)

    def __init__(self, shape):
        super().__init__(shape)
        self.embed_tokens = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList(Starcoder2Block(shape) for _ in range(shape.layers))
        self.norm = norm_of(shape)
        self.lm_head = nn.Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.lm_head.weight = self.embed_tokens.weight
        self.make_tables(shape)

    def forward(self, tokens, targets):
        x = self.embed_tokens(tokens)
        cos, sin = self.tables(tokens, x)
        for layer in self.layers:
            x = self.run(layer, x, cos, sin)
        return self.end(self.widened(self.lm_head(self.norm(x))), targets)


# ---- opt -----------------------------------------------------------------------------------------

class OptAttention(nn.Module):
    """q is scaled before attention, which then does not."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.k_proj = linear(shape, shape.width, shape.width)
        self.v_proj = linear(shape, shape.width, shape.width)
        self.q_proj = linear(shape, shape.width, shape.width)
        self.out_proj = linear(shape, shape.width, shape.width)

    def forward(self, x):
        q = self.q_proj(x) * self.shape.head_dim ** -0.5
        q = in_heads(q, self.shape)
        k, v = in_heads(self.k_proj(x), self.shape), in_heads(self.v_proj(x), self.shape)
        return self.out_proj(merge_heads(attend(q, k, v, self.shape, causal=True, scale=1.0)))


class OptBlock(Block):
    def __init__(self, shape):
        super().__init__(shape)
        self.self_attn = OptAttention(shape)
        self.self_attn_layer_norm = norm_of(shape)
        self.fc1 = linear(shape, shape.width, shape.ffn)
        self.fc2 = linear(shape, shape.ffn, shape.width)
        self.final_layer_norm = norm_of(shape)

    def compute(self, x):
        x = x + self.self_attn(self.self_attn_layer_norm(x))
        return x + self.fc2(F.relu(self.fc1(self.final_layer_norm(x))))


class Opt(Network):
    """The first token's position is 2."""
    block_classes = (OptBlock,)

    def __init__(self, shape):
        super().__init__(shape)
        self.embed_tokens = nn.Embedding(shape.vocab, shape.width)
        self.embed_positions = nn.Embedding(shape.seq + 2, shape.width)
        self.final_layer_norm = norm_of(shape)
        self.layers = nn.ModuleList(OptBlock(shape) for _ in range(shape.layers))
        self.lm_head = nn.Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.lm_head.weight = self.embed_tokens.weight

    def forward(self, tokens, targets):
        x = self.embed_tokens(tokens)
        positions = torch.arange(2, tokens.size(1) + 2, device=tokens.device).unsqueeze(0)
        x = x + self.embed_positions(positions)
        for layer in self.layers:
            x = self.run(layer, x)
        return self.end(self.widened(self.lm_head(self.final_layer_norm(x))), targets)


# ---- neox ----------------------------------------------------------------------------------------

class NeoxAttention(nn.Module):
    """Each head's q, k and v lie side by side in what the layer makes."""

    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.query_key_value = linear(shape, shape.width, 3 * shape.width)
        self.dense = linear(shape, shape.width, shape.width)

    def forward(self, x, cos, sin):
        qkv = self.query_key_value(x).unflatten(2, (-1, 3 * self.shape.head_dim)).transpose(1, 2)
        q, k, v = qkv.chunk(3, dim=-1)
        q, k = turn_parts(q, k, cos, sin)
        return self.dense(merge_heads(attend(q, k, v, self.shape, causal=True)))


class NeoxMlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.dense_h_to_4h = linear(shape, shape.width, shape.ffn)
        self.dense_4h_to_h = linear(shape, shape.ffn, shape.width)

    def forward(self, x):
        return self.dense_4h_to_h(gelu_of(self.shape, self.dense_h_to_4h(x)))


class NeoxBlock(Block):
    def __init__(self, shape):
        super().__init__(shape)
        self.input_layernorm = norm_of(shape)
        self.post_attention_layernorm = norm_of(shape)
        self.attention = NeoxAttention(shape)
        self.mlp = NeoxMlp(shape)

    def compute(self, x, cos, sin):
        attended = self.attention(self.input_layernorm(x), cos, sin)
        if self.shape.block == "parallel":
            hidden = self.mlp(self.post_attention_layernorm(x))
            return hidden + attended + x
        attended = attended + x
        return self.mlp(self.post_attention_layernorm(attended)) + attended


class Neox(Rotary):
    block_classes = (NeoxBlock,)

    def __init__(self, shape):
        super().__init__(shape)
        self.embed_in = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList(NeoxBlock(shape) for _ in range(shape.layers))
        self.final_layer_norm = norm_of(shape)
        self.embed_out = nn.Linear(shape.width, shape.vocab, bias=False)
        if shape.tied:
            self.embed_out.weight = self.embed_in.weight
        self.make_tables(shape)

    def forward(self, tokens, targets):
        x = self.embed_in(tokens)
        cos, sin = self.tables(tokens, x)
        for layer in self.layers:
            x = self.run(layer, x, cos, sin)
        return self.end(self.widened(self.embed_out(self.final_layer_norm(x))), targets)


# ---- phi -----------------------------------------------------------------------------------------

class PhiAttention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.q_proj = linear(shape, shape.width, shape.heads * shape.head_dim)
        self.k_proj = linear(shape, shape.width, shape.kv_heads * shape.head_dim)
        self.v_proj = linear(shape, shape.width, shape.kv_heads * shape.head_dim)
        self.dense = linear(shape, shape.heads * shape.head_dim, shape.width)

    def forward(self, x, cos, sin):
        q, k, v = (in_heads(p(x), self.shape) for p in (self.q_proj, self.k_proj, self.v_proj))
        q, k = turn_parts(q, k, cos, sin)
        return self.dense(merge_heads(attend(q, k, v, self.shape, causal=True)))


class PhiMlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.fc1 = linear(shape, shape.width, shape.ffn)
        self.fc2 = linear(shape, shape.ffn, shape.width)

    def forward(self, x):
        return self.fc2(gelu_of(self.shape, self.fc1(x)))


class PhiBlock(Block):
    def __init__(self, shape):
        super().__init__(shape)
        self.self_attn = PhiAttention(shape)
        self.mlp = PhiMlp(shape)
        self.input_layernorm = norm_of(shape)

    def compute(self, x, cos, sin):
        normed = self.input_layernorm(x)
        attended = self.self_attn(normed, cos, sin)
        hidden = self.mlp(normed)
        return attended + hidden + x


class Phi(Rotary):
    """The head has a bias."""
    block_classes = (PhiBlock,)

    def __init__(self, shape):
        super().__init__(shape)
        self.embed_tokens = nn.Embedding(shape.vocab, shape.width)
        self.layers = nn.ModuleList(PhiBlock(shape) for _ in range(shape.layers))
        self.final_layernorm = norm_of(shape)
        self.lm_head = nn.Linear(shape.width, shape.vocab)
        self.make_tables(shape)

    def forward(self, tokens, targets):
        x = self.embed_tokens(tokens)
        cos, sin = self.tables(tokens, x)
        for layer in self.layers:
            x = self.run(layer, x, cos, sin)
        return self.end(self.widened(self.lm_head(self.final_layernorm(x))), targets)


KINDS = {"starcoder2": Starcoder2, "opt": Opt, "neox": Neox, "phi": Phi}

PRESETS = {
    "starcoder2-toy": dict(kind="starcoder2", layers=2, width=64, heads=4, kv_heads=2, ffn=160, vocab=96, seq=32),
    "opt-toy": dict(kind="opt", layers=2, width=64, heads=2, vocab=96, seq=32, tied=True),
    "neox-toy": dict(kind="neox", layers=2, width=64, heads=2, vocab=96, seq=32, gelu="none", rotary_share=0.25),
    "phi-toy": dict(kind="phi", layers=2, width=64, heads=2, vocab=96, seq=32, gelu="ops", rotary_share=0.5),
    "starcoder2-7b": dict(kind="starcoder2", layers=32, width=4608, heads=36, kv_heads=4, ffn=18432, vocab=49152,
                          seq=4096, rope_base=1000000.0),
    "opt-6.7b": dict(kind="opt", layers=32, width=4096, heads=32, vocab=50272, seq=2048, tied=True),
    "pythia-6.9b": dict(kind="neox", layers=32, width=4096, heads=32, vocab=50432, seq=2048, gelu="none",
                        rotary_share=0.25),
    "phi-2": dict(kind="phi", layers=32, width=2560, heads=32, ffn=10240, vocab=51200, seq=2048, gelu="ops",
                  rotary_share=0.4),
}

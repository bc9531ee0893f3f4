"""Hidden layers of which each token goes to a few ("mixture of experts"), dropless: whatever the router chooses, every
token keeps its experts, and all tensors have tokens x experts-per-token rows.

The operations, their order and the names that hold their results are those of torchtitan's MoE, without expert
parallelism unless expert_parallel.py adds it (torchtitan/models/common/moe.py at 71213cf1 and token_dispatcher.py at e04d67ef, 2026): scores in fp32,
top-k, a stable sort by expert, rows gathered, products grouped by expert, rows scored behind the experts and
scattered back. A bias that balances (route_bias) is added where experts are chosen, of groups of experts the best are kept
(expert_groups). Of its own: the products are in the network's dtype, which torchtitan casts to bf16 (no copies in bf16); what
is scattered is added by PyTorch's own scatter_add; the sum has a name of its own, so that what it was added to goes when
the call returns, and nothing is made between; what moves the bias, once a step (an all-reduce of the counts), is left out."""

import torch
import torch.nn.functional as F
from torch import nn

import expert_parallel
import versions


# What PyTorch's derivatives of x[index] and gather do for real tensors: they add into zeros in place. For a tensor's
# subclass, as fake ones are, C++ takes the functional forms, which would make a second tensor.

class RowsOf(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.size = x.shape
        return x[index]

    @staticmethod
    def backward(ctx, grad):
        index, = ctx.saved_tensors
        return grad.new_zeros(ctx.size).index_put_((index,), grad, accumulate=True), None


class Picked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, index):
        ctx.save_for_backward(index, scores)
        return scores.gather(dim=1, index=index)

    @staticmethod
    def backward(ctx, grad):
        index, scores = ctx.saved_tensors
        return grad.new_zeros(scores.shape).scatter_add_(1, index, grad), None


def rows_of(x, index):
    return x[index] if torch.compiler.is_compiling() else RowsOf.apply(x, index)


def picked(scores, index):
    return scores.gather(dim=1, index=index) if torch.compiler.is_compiling() else Picked.apply(scores, index)


class SwiGlu(nn.Module):
    def __init__(self, width, ffn):
        super().__init__()
        self.gate = nn.Linear(width, ffn, bias=False)
        self.up = nn.Linear(width, ffn, bias=False)
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class WideLinear(nn.Linear):
    """In fp32, as a linear layer under autocast to fp32: its weight is cast first."""

    def forward(self, x):
        weight = self.weight.float()
        return F.linear(x.float(), weight)


class Router(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.gate = WideLinear(shape.width, shape.experts, bias=False)

    def forward(self, x, bias=None):
        scores = self.gate(x)
        if self.shape.score == "sigmoid":
            scores = torch.sigmoid(scores)
        else:
            scores = F.softmax(scores, dim=1)
        to_choose = scores if bias is None else scores + bias
        if self.shape.expert_groups:
            to_choose = self.of_best_groups(to_choose)
        unused, chosen = torch.topk(to_choose, k=self.shape.experts_per_token, dim=-1, sorted=False)
        top = picked(scores, chosen)
        if self.shape.routing == "in-turn":
            chosen, top = self.in_turn(scores)
        if self.shape.route_norm:
            total = top.sum(dim=-1, keepdim=True) + 1e-20
            top = top / total
        top = top * self.shape.route_scale
        counts = count(chosen, self.shape.experts)
        return top, chosen, counts

    def of_best_groups(self, to_choose):
        """Experts of the groups whose two best scores are the largest; -inf for others."""
        groups = self.shape.expert_groups
        grouped = to_choose.view(-1, groups, self.shape.experts // groups)
        best, unused = grouped.topk(2, dim=-1)
        of_groups = best.sum(dim=-1)
        unused, which = torch.topk(of_groups, k=self.shape.groups_per_token, dim=-1, sorted=False)
        hidden = torch.ones_like(of_groups, dtype=torch.bool)
        hidden.scatter_(1, which, False)
        to_choose = grouped.masked_fill(hidden.unsqueeze(-1), float("-inf")).view(-1, self.shape.experts)
        return to_choose

    def in_turn(self, scores):
        tokens, each = scores.size(0), self.shape.experts_per_token
        chosen = torch.arange(tokens * each, device=scores.device).reshape(tokens, each) % self.shape.experts
        return chosen, picked(scores, chosen)


def count(chosen, experts):
    chosen = chosen.float() if chosen.device.type == "cpu" else chosen  # whose kernel takes no whole numbers
    return torch.histc(chosen.view(-1), bins=experts, min=0, max=experts)


def run_grouped(gate, down, up, x, counts):
    ends = torch.cumsum(counts, dim=0, dtype=torch.int32)
    hidden = F.silu(torch._grouped_mm(x, gate.transpose(-2, -1), offs=ends))
    hidden = hidden * torch._grouped_mm(x, up.transpose(-2, -1), offs=ends)
    return torch._grouped_mm(hidden, down.transpose(-2, -1), offs=ends)


class GroupedExperts(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.run = run_grouped
        self.is_shared = False  # each rank has some
        self.gate = self.made(shape, shape.expert_ffn, shape.width)
        self.down = self.made(shape, shape.width, shape.expert_ffn)
        self.up = self.made(shape, shape.expert_ffn, shape.width)

    @staticmethod
    def made(shape, *size):
        return nn.Parameter(nn.init.normal_(torch.empty(shape.experts, *size), std=0.02))

    def forward(self, x, counts):
        gate, down, up = (w.to_local() if isinstance(w, versions.DTensor) else w for w in (self.gate, self.down, self.up))
        return self.run(gate, down, up, x, counts)


class Experts(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.experts = GroupedExperts(shape)
        self.router = Router(shape)
        self.shared = SwiGlu(shape.width, shape.shared_ffn) if shape.shared_ffn else None
        self.register_buffer("bias", torch.zeros(shape.experts, dtype=torch.float32) if shape.route_bias else None)
        self.register_buffer("tokens_per_expert", torch.zeros(shape.experts, dtype=torch.float32), persistent=False)

    def forward(self, x):
        batch, seq, width = x.shape
        x = x.view(-1, width)
        top, chosen, counts = self.router(x, self.bias)
        with torch.no_grad():
            self.tokens_per_expert.add_(counts)
        scores, tokens, counts = self.sorted_by_expert(top, chosen)
        routed = RowsOf.apply(x, tokens)
        given = routed if self.experts.is_shared else None  # torchtitan's has a name of its own; else backward keeps it
        routed = self.experts(routed, counts)
        out = self.shared(x) if self.shared is not None else torch.zeros_like(x)
        if self.experts.is_shared:
            expert_parallel.await_(routed)
        routed = (routed.to(torch.float32) * scores.reshape(-1, 1)).to(x.dtype)
        total = out.scatter_add(dim=0, index=tokens.reshape(-1, 1).expand(-1, width), src=routed)
        return total.reshape(batch, seq, width)

    def sorted_by_expert(self, top, chosen):
        counts = count(chosen, self.shape.experts)
        order = torch.argsort(chosen.view(-1), stable=True)
        scores = rows_of(top.view(-1), order)
        order = order // self.shape.experts_per_token
        return scores, order, counts

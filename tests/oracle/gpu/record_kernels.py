"""tests/oracle/gpu/record_kernels.py - how long PyTorch's kernels take, by kind and shape.

    record_kernels.py --output kernels.jsonl --products products.csv [--device cpu] [--seconds S]

Warm, medians, by CUDA events. products.csv: matrix products (forward TN, input gradients NN, weight
gradients NT, as tests/validation/gemm.csv names them) and attention. kernels.jsonl: kernels that move
bytes, by the names of plan/op/ops.def, with the bytes that plan/op/work.c counts for them.
"""
import itertools

import torch
import torch.nn.functional as F

from instrument import Budget, ProductTable, Rows, clocks, device_us, header, read_options, rotated, warm_up

DTYPES = {'bf16': torch.bfloat16, 'fp16': torch.float16, 'fp32': torch.float32, 'tf32': torch.float32}

# (out features n, in features k) of the linear layers: GPT-2 XL, Llama 3 8B, GPT-175B, T5-11B.
LAYERS = {
    'gpt2-xl': [(4800, 1600), (1600, 1600), (6400, 1600), (1600, 6400), (50257, 1600)],
    'llama3-8b': [(4096, 4096), (1024, 4096), (14336, 4096), (4096, 14336), (128256, 4096)],
    'gpt-175b': [(36864, 12288), (12288, 12288), (49152, 12288), (12288, 49152)],
    't5-11b': [(16384, 1024), (1024, 16384), (65536, 1024), (1024, 65536)],
}
TOKENS = {'gpt2-xl': (2048, 8192), 'llama3-8b': (2048, 8192), 'gpt-175b': (2048, 4096),
          't5-11b': (4096,)}
# (batch, heads, kv heads, seq, head_dim)
ATTENTION = [(1, 25, 25, 1024, 64), (8, 25, 25, 1024, 64), (4, 25, 25, 2048, 64), (1, 25, 25, 8192, 64),
             (1, 32, 8, 2048, 128), (1, 32, 8, 4096, 128), (1, 32, 8, 8192, 128), (4, 32, 8, 8192, 128),
             (1, 96, 96, 2048, 128), (2, 96, 96, 2048, 128), (1, 96, 96, 8192, 128),
             (8, 12, 12, 1024, 64), (1, 16, 16, 512, 64)]


# ---- matrix products -----------------------------------------------------------------------------

def product_cases():
    """(dtype, layout, m, n, k), the most telling first."""
    for size in (8192, 4096, 2048, 1024):
        yield 'bf16', 'TN', size, size, size
    for name, layers in LAYERS.items():
        for tokens, (n, k) in itertools.product(TOKENS[name], layers):
            yield 'bf16', 'TN', tokens, n, k
            yield 'bf16', 'NN', tokens, k, n
            yield 'bf16', 'NT', n, k, tokens
    for m, n, k in ((4096, 4096, 333), (4096, 333, 4096), (333, 4096, 4096), (4095, 4097, 4099),
                    (1, 4096, 4096), (16, 4096, 4096), (128, 4096, 4096), (512, 512, 512), (256, 256, 256),
                    (512, 4096, 4096), (1000, 1000, 1000), (16384, 256, 256), (256, 256, 16384)):
        yield 'bf16', 'TN', m, n, k
    for dtype in ('fp16', 'tf32', 'fp32'):
        for m, n, k in ((8192, 8192, 8192), (4096, 4096, 4096), (2048, 4800, 1600), (2048, 1600, 6400),
                        (2048, 14336, 4096), (1024, 1024, 1024)):
            yield dtype, 'TN', m, n, k
            yield dtype, 'NN', m, n, k
            yield dtype, 'NT', m, n, k


def operands(layout, m, n, k, dtype, device):
    """Left (m x k) and right (k x n) as a linear layer's forward, input gradient or weight gradient
    has them in memory: TN x w', NN dy w, NT dy' x."""
    def dense(*shape):
        return torch.randn(*shape, device=device, dtype=dtype)
    left = dense(k, m).t() if layout == 'NT' else dense(m, k)
    right = dense(n, k).t() if layout == 'TN' else dense(k, n)
    return left, right


def product(table, device, dtype, layout, m, n, k):
    torch.backends.cuda.matmul.allow_tf32 = dtype == 'tf32'
    kind = DTYPES[dtype]
    size = (m * k + k * n + m * n) * kind.itemsize
    inputs = rotated(lambda: (*operands(layout, m, n, k, kind, device),
                              torch.empty(m, n, device=device, dtype=kind)), size, device)
    time = device_us(device, lambda t: torch.mm(t[0], t[1], out=t[2]), inputs)
    torch.backends.cuda.matmul.allow_tf32 = False
    table.add(kind='gemm', dtype=dtype, out_dtype='fp32' if dtype == 'tf32' else dtype, batch=1, m=m, n=n, k=k,
              layout=layout, accumulate='False', time_us=time['us'],
              tflops=round(2 * m * n * k / time['us'] / 1e6, 3))
    return ()


def record_products(rows, table, budget, device, small):
    for dtype, layout, m, n, k in product_cases():
        name = 'product %s %s %dx%dx%d' % (dtype, layout, m, n, k)
        if small:
            m, n, k = (max(1, s // 64) for s in (m, n, k))
        rows.attempt(budget, name, lambda: product(table, device, dtype, layout, m, n, k))


# ---- attention -----------------------------------------------------------------------------------

def attention(table, device, batch, heads, kv_heads, seq, head_dim):
    def make():
        # As networks lay them: rows of heads, seen with the heads in front.
        return [torch.randn(batch, seq, h, head_dim, device=device, dtype=torch.bfloat16).transpose(1, 2)
                .requires_grad_() for h in (heads, kv_heads, kv_heads)]

    def forward(inputs):
        return F.scaled_dot_product_attention(*inputs, is_causal=True, enable_gqa=heads != kv_heads)

    def add(kind, operations, time):
        table.add(kind=kind, dtype='bf16', time_us=time['us'], tflops=round(operations / time['us'] / 1e6, 3),
                  extra_shape='batch=%d, seq_len=%d, head_num=%d, kv_head_num=%d, qk_head_dim=%d, v_head_dim=%d'
                  % (batch, seq, heads, kv_heads, head_dim, head_dim),
                  notes='causal, but all of the square is counted, as the other attention rows count')

    inputs = rotated(make, batch * seq * head_dim * (heads + 2 * kv_heads) * 2, device)
    operations = 4 * batch * heads * seq * seq * head_dim
    with torch.no_grad():
        add('attention fwd', operations, device_us(device, forward, inputs))
    graphs = []
    for leaves in inputs:
        out = forward(leaves)
        graphs.append((out, leaves, torch.randn_like(out)))
    add('attention bwd', 2.5 * operations,
        device_us(device, lambda g: torch.autograd.grad(g[0], g[1], g[2], retain_graph=True), graphs))
    return ()


def record_attention(rows, table, budget, device, small):
    for batch, heads, kv_heads, seq, head_dim in ATTENTION:
        name = 'attention %dx%dx%dx%d' % (batch, heads, seq, head_dim)
        if small:
            batch, seq = 1, seq // 64
        rows.attempt(budget, name, lambda: attention(table, device, batch, heads, kv_heads, seq, head_dim))


def record_backends(rows, budget):
    """Each of PyTorch's attention kernels by itself; the rows above are of the one it chooses."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def forced(backend, batch, heads, kv_heads, seq, head_dim):
        inputs = [torch.randn(batch, h, seq, head_dim, device='cuda', dtype=torch.bfloat16, requires_grad=True)
                  for h in (heads, heads if backend == SDPBackend.EFFICIENT_ATTENTION else kv_heads, kv_heads)]
        inputs[1:] = [inputs[1], inputs[1].detach().clone().requires_grad_()]
        with sdpa_kernel(backend):
            def forward(leaves):
                return F.scaled_dot_product_attention(*leaves, is_causal=True,
                                                      enable_gqa=leaves[0].shape != leaves[1].shape)
            with torch.no_grad():
                forward_us = device_us('cuda', forward, [inputs])['us']
            out = forward(inputs)
            g = torch.randn_like(out)
            backward_us = device_us('cuda', lambda t: torch.autograd.grad(out, t, g, retain_graph=True), [inputs])['us']
        yield {'attention_backend': backend.name, 'batch': batch, 'heads': heads, 'kv_heads': kv_heads, 'seq': seq,
               'head_dim': head_dim, 'forward_us': forward_us, 'backward_us': backward_us}

    for shape in ATTENTION[:1] + ATTENTION[4:7] + ATTENTION[8:9]:
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION):
            rows.attempt(budget, '%s %s' % (backend.name, shape), lambda: forced(backend, *shape))


# ---- kernels that move bytes ---------------------------------------------------------------------

def byte_kinds(rows, width, vocab, dtype, device):
    """(op of plan/op/ops.def, make, call, bytes moved): make() gives what call takes."""
    aten = torch.ops.aten
    size, n = dtype.itemsize, rows * width

    def full(*shape, kind=dtype):
        return torch.randn(*shape, device=device, dtype=kind)

    def index(count, bound):
        return torch.randint(0, bound, (count,), device=device)

    x, w = (lambda: full(rows, width)), (lambda: full(width))
    stat = 4 * rows
    yield 'copy', lambda: (x(), x()), lambda t: t[1].copy_(t[0]), 2 * n * size
    yield 'fill', lambda: (x(),), lambda t: t[0].fill_(1), n * size
    yield 'cast', lambda: (full(rows, width, kind=torch.float32), x()), lambda t: t[1].copy_(t[0]), n * (4 + size)
    yield 'add', lambda: (x(), x(), x()), lambda t: torch.add(t[0], t[1], out=t[2]), 3 * n * size
    yield 'accumulate', lambda: (x(), x()), lambda t: t[0].add_(t[1]), 3 * n * size
    yield 'mul', lambda: (x(), x(), x()), lambda t: torch.mul(t[0], t[1], out=t[2]), 3 * n * size
    yield 'mul_row', lambda: (x(), w()), lambda t: t[0] * t[1], (2 * n + width) * size
    yield 'mul_column', lambda: (x(), full(rows, 1)), lambda t: t[0] * t[1], (2 * n + rows) * size
    yield 'power', lambda: (x(),), lambda t: t[0].pow(2), 2 * n * size
    yield 'times_number', lambda: (x(),), lambda t: t[0] * 2.0, 2 * n * size
    yield 'sum_columns', lambda: (x(),), lambda t: t[0].mean(-1, keepdim=True), (n + rows) * size
    yield 'spread', lambda: (full(rows, 1),), lambda t: t[0].expand(rows, width) / width, (n + rows) * size
    yield 'relu', lambda: (x(),), lambda t: torch.relu(t[0]), 2 * n * size
    for name, approximate in (('gelu_tanh', 'tanh'), ('gelu_erf', 'none')):
        yield (name, lambda: (x(),), lambda t, a=approximate: aten.gelu(t[0], approximate=a), 2 * n * size)
        yield (name + '_backward', lambda: (x(), x()),
               lambda t, a=approximate: aten.gelu_backward(t[0], t[1], approximate=a), 3 * n * size)
    yield 'silu', lambda: (x(),), lambda t: aten.silu(t[0]), 2 * n * size
    yield 'silu_backward', lambda: (x(), x()), lambda t: aten.silu_backward(t[0], t[1]), 3 * n * size
    yield ('layernorm', lambda: (x(), w(), w()),
           lambda t: aten.native_layer_norm(t[0], [width], t[1], t[2], 1e-5), (2 * n + 2 * width) * size + 2 * stat)

    def norm_state():
        y = x()
        _, mean, rstd = aten.native_layer_norm(y, [width], w(), w(), 1e-5)
        return x(), y, mean, rstd, w(), w()
    yield ('layernorm_backward', norm_state, lambda t: aten.native_layer_norm_backward(
        t[0], t[1], [width], t[2], t[3], t[4], t[5], [True, True, True]), (3 * n + 3 * width) * size + 2 * stat)
    yield ('rmsnorm', lambda: (x(), w()), lambda t: aten._fused_rms_norm(t[0], [width], t[1], 1e-5),
           (2 * n + width) * size + stat)

    def rms_state():
        y, weight = x(), w()
        _, rstd = aten._fused_rms_norm(y, [width], weight, 1e-5)
        return x(), y, rstd, weight
    yield ('rmsnorm_backward', rms_state, lambda t: aten._fused_rms_norm_backward(
        t[0], t[1], [width], t[2], t[3], [True, True]), (3 * n + 2 * width) * size + stat)

    # Norms of q and k (Qwen 3): the same numbers in rows as short as a head is.
    head = min(128, width)
    heads = n // head

    def head_state():
        y, weight = full(heads, head), full(head)
        _, rstd = aten._fused_rms_norm(y, [head], weight, 1e-5)
        return full(heads, head), y, rstd, weight
    yield ('rmsnorm_of_heads', lambda: (full(heads, head), full(head)),
           lambda t: aten._fused_rms_norm(t[0], [head], t[1], 1e-5), 2 * n * size + 4 * heads)
    yield ('rmsnorm_of_heads_backward', head_state, lambda t: aten._fused_rms_norm_backward(
        t[0], t[1], [head], t[2], t[3], [True, True]), 3 * n * size + 4 * heads)
    yield 'softmax', lambda: (x(),), lambda t: aten._softmax(t[0], 1, False), 2 * n * size
    yield ('softmax_backward', lambda: (x(), x()),
           lambda t: aten._softmax_backward_data(t[0], t[1], 1, dtype), 3 * n * size)
    yield 'sum_rows', lambda: (x(),), lambda t: t[0].sum(0), (n + width) * size
    yield 'dropout', lambda: (x(),), lambda t: aten.native_dropout(t[0], 0.1, True), n * (2 * size + 1)
    yield ('embedding', lambda: (full(vocab, width), index(rows, vocab)),
           lambda t: aten.embedding(t[0], t[1]), 2 * n * size + 8 * rows)
    yield ('embedding_backward', lambda: (x(), index(rows, vocab)),
           lambda t: aten.embedding_dense_backward(t[0], t[1], vocab, -1, False),
           (n + vocab * width) * size + 8 * rows)
    yield ('log_softmax', lambda: (full(rows, vocab),), lambda t: aten._log_softmax(t[0], 1, False),
           2 * rows * vocab * size)
    yield ('log_softmax_backward', lambda: (full(rows, vocab), full(rows, vocab)),
           lambda t: aten._log_softmax_backward_data(t[0], t[1], 1, dtype), 3 * rows * vocab * size)
    yield ('nll_loss', lambda: (full(rows, vocab), index(rows, vocab)),
           lambda t: aten.nll_loss_forward(t[0], t[1], None, 1, -100), rows * (size + 8))


def optimizer_kinds(elements, tensors, device):
    """Steps of PyTorch's own AdamW over `tensors` parameters: (name, make, call, bytes of all states)."""
    def make(**how):
        parameters = [torch.nn.Parameter(torch.randn(elements // tensors, device=device)) for _ in range(tensors)]
        optimizer = torch.optim.AdamW(parameters, lr=1e-4, **how)
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        optimizer.step()
        return optimizer
    for name, how in (('adamw fused', {'fused': True}), ('adamw foreach', {'foreach': True})):
        # fused: reads gradient, parameter and both moments, writes the last three
        yield name, lambda how=how: make(**how), lambda o: o.step(), 7 * 4 * elements


def foreach_kinds(elements, tensors, device):
    """The kernels of foreach AdamW one by one, by their names in plan/op/ops.def."""
    def lists(count):
        return lambda: [[torch.rand(elements // tensors, device=device) + 0.1 for _ in range(tensors)]
                        for _ in range(count)]
    one = 4 * elements
    yield 'adam_decay', lists(1), lambda t: torch._foreach_mul_(t[0], 0.999), 2 * one
    yield 'adam_moment', lists(2), lambda t: torch._foreach_lerp_(t[0], t[1], 0.1), 3 * one
    yield 'adam_square', lists(2), lambda t: torch._foreach_addcmul_(t[0], t[1], t[1], 0.001), 3 * one
    yield 'adam_sqrt', lists(1), lambda t: torch._foreach_sqrt(t[0]), 2 * one
    yield 'adam_eps', lists(1), lambda t: torch._foreach_add_(t[0], 1e-8), 2 * one
    yield 'adam_update', lists(3), lambda t: torch._foreach_addcdiv_(t[0], t[1], t[2], 1e-4), 4 * one
    yield 'norms', lists(1), lambda t: torch._foreach_norm(t[0]), one


def record_bytes(rows, budget, device, small):
    def timed(op, shape, dtype, make, call, moved):
        # What make() holds is about what moves; that is enough to outgrow the caches.
        time = device_us(device, call, rotated(make, moved, device))
        yield {'kernel': op, 'shape': shape, 'dtype': dtype, 'bytes': moved,
               'gb_per_s': round(moved / time['us'] / 1e3, 2), **time}

    shapes = [(8192, 4096, 32000), (2048, 1600, 50257), (2048, 12288, 50000), (16384, 1024, 32128)]
    for (tokens, width, vocab), dtype in itertools.product(shapes, ('bf16', 'fp32')):
        if small:
            tokens, width, vocab = tokens // 64, width // 16, vocab // 64
        shape = '%dx%d (vocabulary %d)' % (tokens, width, vocab)
        for op, make, call, moved in byte_kinds(tokens, width, vocab, DTYPES[dtype], device):
            rows.attempt(budget, '%s %s %s' % (op, shape, dtype), lambda: timed(op, shape, dtype, make, call, moved))
    for elements, tensors in ((2**28, 64), (2**24, 64), (2**28, 1)):
        elements = elements // 2**12 if small else elements
        shape = '%d elements in %d tensors' % (elements, tensors)
        for op, make, call, moved in itertools.chain(foreach_kinds(elements, tensors, device),
                                                     optimizer_kinds(elements, tensors, device)):
            rows.attempt(budget, op + ' ' + shape, lambda: timed(op, shape, 'fp32', make, call, moved))


def record_launches(rows, budget, device):
    """The gap between kernels of one stream: so many tiny kernels, the host ahead of them."""
    def gap():
        tiny = torch.zeros(32, device=device)
        time = device_us(device, lambda t: t.add_(1), [tiny], target_us=1e9)
        yield {'launch': 'tiny kernels in a row', **time}
    rows.attempt(budget, 'launch gap', gap)


def main():
    options = read_options(__doc__, lambda p: p.add_argument('--products', required=True,
                                                             help='the CSV of products and attention'))
    device, small = options.device, options.device == 'cpu'
    head = header(options)
    budget = Budget(options.seconds)
    rows, table = Rows(options.output, head), ProductTable(options.products, head)
    warm_up(device)
    record_launches(rows, budget, device)
    # The list is long; the kernels after it shall have their turn.
    half = Budget(options.seconds / 2)
    record_products(rows, table, half, device, small)
    budget.left_out += half.left_out
    rows.add(clocks='after the products', **(clocks() if device == 'cuda' else {}))
    record_attention(rows, table, budget, device, small)
    record_bytes(rows, budget, device, small)
    if not small:
        record_backends(rows, budget)
    table.close()
    rows.close(budget, device)


if __name__ == '__main__':
    main()

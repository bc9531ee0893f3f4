"""tests/oracle/gpu/record_training.py - tokens per second of plain PyTorch on one GPU, eager and compiled.

    record_training.py --output training.jsonl [--device cpu] [--seconds S]

GPT-2 1.5B and blocks shaped like Llama 3 8B's, bf16, SDPA, fused AdamW, no FSDP: the mark that
`foreshard run --device cuda` is held against in the same session. A row has the median step of those after the
warm-up, the memory peaks, and the loss, which tells a run of numbers from one of NaN.
"""
import gc
import time

import torch

from instrument import Budget, Rows, clocks, find_recorder, header, read_options, summary, synchronize

GPT2 = dict(kind='gpt', layers=48, width=1600, heads=25, vocab=50257, tied=True)
LLAMA = dict(kind='llama', layers=8, width=4096, heads=32, kv_heads=8, ffn=14336, vocab=128256, rope_base=500000.0)
NETWORKS = {'gpt2-xl': GPT2, 'llama3-8b, 8 blocks': LLAMA}
TOKENS = 16384  # a step
# eager; each block compiled, which takes seconds since blocks are alike; all of the network compiled.
# The most telling first, since the time may end before the list does: of each length what is quickest as a rule.
CASES = [(name, seq, how) for seqs, hows in (((2048, 8192, 4096), ('blocks', 'eager')), ((2048, 8192, 4096), ('whole',)))
         for seq in seqs for how in hows for name in NETWORKS]


def small(shape):
    """The same network, to try the recorder on a CPU."""
    return dict(shape, layers=2, width=64, heads=4, vocab=96, **({'ffn': 160, 'kv_heads': 2}
                                                                   if shape['kind'] == 'llama' else {}))


def flops_of_step(shape, parameters, tokens):
    """As plan/op/work.c counts: 6 a parameter and token of the products, and attention over the causal half."""
    attention = 3.5 * 4 * shape.layers * tokens * (shape.seq + 1) / 2 * shape.heads * shape.head_dim
    in_products = parameters - shape.vocab * shape.width * (0 if shape.tied else 1)
    if shape.kind == 'gpt':
        in_products -= shape.seq * shape.width
    return 6 * in_products * tokens + attention


def mark(device):
    """This moment of the stream, or of the clock."""
    if device != 'cuda':
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def step_times(step, device, warm, counted):
    """From the end of one step to that of the next, which the host has issued by then, as it does in training: ours are
    timed so, too. The first, before which the device rests, does not count."""
    for _ in range(warm):
        step()
    synchronize(device)
    marks = []
    for _ in range(counted + 1):
        step()
        marks.append(mark(device))
    synchronize(device)
    return summary([1e3 * a.elapsed_time(b) if device == 'cuda' else 1e6 * (b - a)
                    for a, b in zip(marks, marks[1:])])


def train(name, fields, seq, batch, how, device):
    import networks
    from building_blocks import Shape
    shape = Shape(seq=seq, **fields)
    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        network = networks.make_network(shape)
    torch.set_default_dtype(torch.float32)
    # PyTorch's own start of an embedding has a deviation of 1, whose logits would overflow.
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.02)
    parameters = sum(p.numel() for p in network.parameters())
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, fused=True)
    tokens, targets = networks.make_batch(shape, batch, device)
    model = torch.compile(network) if how == 'whole' else network
    for layer in network.layers if how == 'blocks' else ():
        layer.compile()
    losses = []

    def step():
        loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    began = time.perf_counter()
    step()
    synchronize(device)
    first_s = time.perf_counter() - began
    if device == 'cuda':
        torch.cuda.reset_peak_memory_stats()
    times = step_times(step, device, warm=2, counted=5)
    row = {'train': name, 'how': how, 'seq': seq, 'batch': batch, 'dtype': 'bf16',
           'layers': shape.layers, 'parameters': parameters,
           'tokens_per_s': round(batch * seq / times['us'] * 1e6, 1),
           'tflops': round(flops_of_step(shape, parameters, batch * seq) / times['us'] / 1e6, 2),
           'first_step_s': round(first_s, 1), 'loss_first': round(float(losses[0]), 4),
           'loss_last': round(float(losses[-1]), 4), **times}
    if device == 'cuda':
        row |= {'peak_allocated': torch.cuda.max_memory_allocated(),
                'peak_reserved': torch.cuda.max_memory_reserved(), **clocks()}
    yield row


def main():
    options = read_options(__doc__)
    find_recorder()
    device = options.device
    rows, budget = Rows(options.output, header(options)), Budget(options.seconds)
    for name, seq, how in CASES:
        fields = NETWORKS[name]
        if device == 'cpu':
            if how != 'eager':
                continue  # takes a C++ compiler and minutes, and tries nothing of this program
            fields, seq = small(fields), seq // 64
        tokens = TOKENS if device == 'cuda' else 256
        rows.attempt(budget, '%s, %d, %s' % (name, seq, how),
                     lambda: train(name, fields, seq, tokens // seq, how, device))
        if device == 'cuda':
            torch._dynamo.reset()
            gc.collect()
            torch.cuda.empty_cache()
    rows.close(budget, device)


if __name__ == '__main__':
    main()

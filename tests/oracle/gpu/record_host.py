"""tests/oracle/gpu/record_host.py - what PyTorch's host thread pays: issuing ops, allocating, events.

    record_host.py --output host.jsonl [--device cpu] [--seconds S]

Ops are tiny, so that what is timed is the host and not the device: `issue` rows are one call each,
`block` rows a transformer block's forward and backward as a network runs it, plain and in FSDP1 or FSDP2 (a
fake process group of 8). `malloc` rows are the driver's cudaMalloc and cudaFree by size and by segments
alive, `retry` rows what PyTorch's allocator takes to give its cached segments back and ask again.
"""
import argparse
import ctypes
import time

import torch
import torch.nn.functional as F

from instrument import Budget, Rows, header, host_us, read_options, summary, synchronize, find_recorder

MIB = 2**20


# ---- issuing -------------------------------------------------------------------------------------

def issue_cases(device):
    """(what, call): each call issues one op of a training step, on tensors of a few KB."""
    x = torch.randn(32, 64, device=device)
    w = torch.randn(64, 64, device=device)
    bias, scale = torch.randn(64, device=device), torch.ones(64, device=device)
    out = torch.empty_like(x)
    heads = torch.randn(1, 2, 32, 32, device=device)
    table, index = torch.randn(100, 64, device=device), torch.randint(0, 100, (32,), device=device)
    linear = torch.nn.Linear(64, 64, device=device)
    norm = torch.nn.LayerNorm(64, device=device)
    yield 'add into a tensor', lambda: torch.add(x, x, out=out)
    yield 'add', lambda: x + x
    yield 'mul', lambda: x * x
    yield 'mm', lambda: torch.mm(x, w)
    yield 'addmm', lambda: torch.addmm(bias, x, w)
    yield 'linear', lambda: F.linear(x, w, bias)
    yield 'linear module', lambda: linear(x)
    yield 'layer norm', lambda: F.layer_norm(x, (64,), scale, bias)
    yield 'layer norm module', lambda: norm(x)
    yield 'gelu', lambda: F.gelu(x)
    yield 'embedding', lambda: F.embedding(index, table)
    yield 'attention', lambda: F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
    yield 'cast', lambda: x.to(torch.bfloat16)
    yield 'copy', lambda: out.copy_(x)
    yield 'fill', lambda: out.zero_()
    yield 'view', lambda: x.view(64, 32)


def record_issue(rows, budget, device):
    for what, call in issue_cases(device):
        def plain():
            with torch.no_grad():
                yield {'issue': what, 'grad': False, **host_us(device, call)}

        def with_grad():
            yield {'issue': what, 'grad': True, **host_us(device, call)}
        rows.attempt(budget, 'issue ' + what, plain)
        if what.endswith('module'):
            rows.attempt(budget, 'issue ' + what + ' with grad', with_grad)

    def backward_of_adds():
        leaf = torch.randn(64, device=device, requires_grad=True)
        times = []
        for _ in range(9):
            y = leaf
            for _ in range(500):
                y = y * 1.0
            synchronize(device)
            began = time.perf_counter()
            y.backward(torch.ones_like(y))
            times.append((time.perf_counter() - began) * 1e6 / 500)
        yield {'issue': 'one node of backward (mul)', 'grad': True, **summary(times)}
    rows.attempt(budget, 'backward', backward_of_adds)


# ---- blocks and optimizers -------------------------------------------------------------------------

def wrapped_blocks(mode, device, layers):
    """GPT blocks of width 64, alone or as units of FSDP."""
    import networks
    import parallel
    from building_blocks import Shape
    from options import add_training_options
    shape = Shape(kind='gpt', layers=layers, width=64, heads=2, vocab=96, seq=32)
    network = networks.make_network(shape).to(device)
    parser = argparse.ArgumentParser()
    add_training_options(parser)
    options = parser.parse_args(['--mode', mode, '--world', '8', '--param-dtype', 'bf16', '--reduce-dtype', 'fp32'])
    options.real = False
    if mode != 'none' and not torch.distributed.is_initialized():
        parallel.start_process_group(options)
    where = torch.device(device, 0) if device == 'cuda' else torch.device(device)
    mesh = parallel.make_mesh(options, device) if mode != 'none' else None
    model = parallel.wrap(network, options, mesh, where)
    return model, networks.make_batch(shape, 1, device)


def record_blocks(rows, budget, device):
    def pass_times(model, batch, repeats=15):
        forward, backward = [], []
        for i in range(repeats + 5):
            synchronize(device)
            began = time.perf_counter()
            loss = model(*batch)
            middle = time.perf_counter()
            loss.backward()
            end = time.perf_counter()
            model.zero_grad()
            if i >= 5:
                forward.append((middle - began) * 1e6)
                backward.append((end - middle) * 1e6)
        return summary(forward)['us'], summary(backward)['us']

    for mode in ('none', 'fsdp2', 'fsdp1'):
        def a_block():
            # The difference of two depths is what a block costs, without embedding, head and loss.
            few, many = 2, 10
            a, b = (pass_times(*wrapped_blocks(mode, device, layers)) for layers in (few, many))
            for i, phase in enumerate(('forward', 'backward')):
                yield {'block': 'gpt', 'mode': mode, 'phase': phase, 'us': round((b[i] - a[i]) / (many - few), 2),
                       'us_of_10_layers': b[i], 'us_of_2_layers': a[i]}
        rows.attempt(budget, 'block ' + mode, a_block)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    for how in ('foreach', 'fused'):
        def a_step():
            parameters = [torch.nn.Parameter(torch.randn(64, device=device)) for _ in range(200)]
            optimizer = torch.optim.AdamW(parameters, lr=1e-4, **{how: True})
            for parameter in parameters:
                parameter.grad = torch.randn_like(parameter)
            time_us = host_us(device, optimizer.step, calls=5)
            yield {'optimizer': 'adamw ' + how, 'tensors': 200, **time_us}
        rows.attempt(budget, 'adamw ' + how, a_step)


# ---- the caching allocator, events -------------------------------------------------------------------

def record_calls(rows, budget, device):
    """Host costs of an allocation that finds a block, of its release, and of events."""
    def alloc_and_free():
        kept = [None] * 200
        for size, name in ((1000, '1 kB'), (3 * MIB, '3 MiB'), (30 * MIB, '30 MiB')):
            for _ in range(3):  # later rounds find cached blocks
                for i in range(len(kept)):
                    kept[i] = torch.empty(size, dtype=torch.uint8, device=device)
                for i in range(len(kept)):
                    kept[i] = None
            allocs, frees = [], []
            for _ in range(7):
                began = time.perf_counter()
                for i in range(len(kept)):
                    kept[i] = torch.empty(size, dtype=torch.uint8, device=device)
                middle = time.perf_counter()
                for i in range(len(kept)):
                    kept[i] = None
                allocs.append((middle - began) * 1e6 / len(kept))
                frees.append((time.perf_counter() - middle) * 1e6 / len(kept))
            yield {'call': 'alloc', 'size': name, **summary(allocs)}
            yield {'call': 'free', 'size': name, **summary(frees)}
    rows.attempt(budget, 'alloc and free', alloc_and_free)
    if device != 'cuda':
        return
    side = torch.cuda.Stream()
    events = [torch.cuda.Event() for _ in range(2)]
    tensor = torch.zeros(64, device=device)
    current = torch.cuda.current_stream()
    for event in events:
        event.record()

    def marked():
        torch.zeros(64, device=device).record_stream(side)
    cases = [('record', lambda: events[0].record()), ('query', lambda: events[1].query()),
             ('wait', lambda: side.wait_event(events[1])), ('host_wait of a past event', events[1].synchronize),
             ('synchronize at rest', torch.cuda.synchronize), ('zeros + mark', marked),
             ('zeros', lambda: torch.zeros(64, device=device)),
             ('event made and recorded', lambda: current.record_event()), ('item', tensor[0].item)]
    for name, call in cases:
        rows.attempt(budget, name, lambda: [{'call': name, **host_us(device, call)}])
    for size in (MIB, 64 * MIB, 1024 * MIB):
        def pinned():
            times, frees = [], []
            runtime = cuda_runtime()
            for _ in range(5):
                pointer = ctypes.c_void_p()
                began = time.perf_counter()
                check(runtime.cudaHostAlloc(ctypes.byref(pointer), ctypes.c_size_t(size), 0), 'cudaHostAlloc')
                middle = time.perf_counter()
                check(runtime.cudaFreeHost(pointer), 'cudaFreeHost')
                times.append((middle - began) * 1e6)
                frees.append((time.perf_counter() - middle) * 1e6)
            yield {'call': 'cudaHostAlloc', 'bytes': size, **summary(times)}
            yield {'call': 'cudaFreeHost', 'bytes': size, **summary(frees)}
        rows.attempt(budget, 'cudaHostAlloc', pinned)


# ---- the driver's memory -------------------------------------------------------------------------------

def cuda_runtime():
    """The CUDA runtime that PyTorch itself has loaded."""
    with open('/proc/self/maps', encoding='utf-8') as maps:
        for line in maps:
            if 'libcudart' in line:
                return ctypes.CDLL(line.split()[-1])
    raise OSError('PyTorch has no libcudart loaded')


def check(status, call):
    if status:
        raise RuntimeError('%s failed with CUDA error %d' % (call, status))


def malloc_us(runtime, size):
    pointer = ctypes.c_void_p()
    began = time.perf_counter()
    check(runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)), 'cudaMalloc')
    return pointer, (time.perf_counter() - began) * 1e6


def free_us(runtime, pointer):
    began = time.perf_counter()
    check(runtime.cudaFree(pointer), 'cudaFree')
    return (time.perf_counter() - began) * 1e6


def record_malloc(rows, budget):
    runtime = cuda_runtime()

    def with_segments_alive(alive, alive_bytes, sizes):
        held = [malloc_us(runtime, alive_bytes)[0] for _ in range(alive)]
        try:
            for size in sizes:
                made = []
                for _ in range(9):
                    made.append(malloc_us(runtime, size))
                    held.append(made[-1][0])
                frees = [free_us(runtime, held.pop()) for _ in made]
                # The first of a size may map new pages; the allocator's segments are such firsts.
                yield {'malloc': 'cudaMalloc', 'bytes': size, 'alive': alive, 'first_us': round(made[0][1], 2),
                       **summary([us for _, us in made])}
                yield {'malloc': 'cudaFree', 'bytes': size, 'alive': alive, **summary(frees)}
        finally:
            for pointer in held:
                free_us(runtime, pointer)
    sizes = [2 * MIB, 20 * MIB, 200 * MIB, 1024 * MIB, 8192 * MIB]
    for alive in (0, 100, 1000, 3000):
        rows.attempt(budget, 'cudaMalloc with %d segments' % alive,
                     lambda: with_segments_alive(alive, 20 * MIB, sizes if alive == 0 else sizes[:4]))

    def busy_free():
        """cudaFree waits for the device: how long beside a kernel of known length."""
        for spin_us in (0, 1000, 10000):
            pointer, _ = malloc_us(runtime, 20 * MIB)
            torch.cuda.synchronize()
            if spin_us:
                torch.cuda._sleep(int(spin_us * 1900))
            yield {'malloc': 'cudaFree', 'behind_kernel_us': spin_us, 'us': round(free_us(runtime, pointer), 2)}
    rows.attempt(budget, 'cudaFree behind a kernel', busy_free)


def record_retry(rows, budget):
    """The card full of cached segments, then a request that none fits: synchronize, cudaFree of each, cudaMalloc."""
    def retry(segment_bytes):
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info()
        count = int((free - 512 * MIB) // segment_bytes)
        count = min(count, 4000)
        held = [torch.empty(segment_bytes, dtype=torch.uint8, device='cuda') for _ in range(count)]
        del held
        before = torch.cuda.memory_stats()['num_alloc_retries']
        torch.cuda.synchronize()
        wanted = torch.cuda.mem_get_info()[0] + segment_bytes
        began = time.perf_counter()
        large = torch.empty(wanted, dtype=torch.uint8, device='cuda')
        us = (time.perf_counter() - began) * 1e6
        retries = torch.cuda.memory_stats()['num_alloc_retries'] - before
        del large
        began = time.perf_counter()
        torch.cuda.empty_cache()
        yield {'retry': 'request after a full cache', 'segments': count, 'segment_bytes': segment_bytes,
               'request_bytes': wanted, 'retries': retries, 'us': round(us, 1),
               'us_per_segment': round(us / max(1, count), 2),
               'empty_cache_of_one_us': round((time.perf_counter() - began) * 1e6, 1)}
    for size in (1024 * MIB, 200 * MIB, 32 * MIB):
        rows.attempt(budget, 'retry over segments of %d MiB' % (size // MIB), lambda: retry(size))


def main():
    options = read_options(__doc__)
    find_recorder()
    if options.device == 'cpu':  # FSDP asks a device for streams; these only report
        import fake_gpu
        fake_gpu.use_streams_on_cpu()
    rows, budget = Rows(options.output, header(options)), Budget(options.seconds)
    record_issue(rows, budget, options.device)
    record_calls(rows, budget, options.device)
    if options.device == 'cuda':
        record_malloc(rows, budget)
    record_blocks(rows, budget, options.device)
    if options.device == 'cuda':
        record_retry(rows, budget)
    rows.close(budget, options.device)


if __name__ == '__main__':
    main()

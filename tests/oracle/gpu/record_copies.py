"""tests/oracle/gpu/record_copies.py - copies between host and GPU, and what copies and kernels do to each other.

    record_copies.py --output copies.jsonl [--device cpu] [--seconds S]

`copy` rows: one copy by size, from pinned and from pageable memory, and within the GPU (bytes read plus bytes
written). `both` rows: to and from the host at once. `beside` rows: a matrix product, or a kernel that moves
bytes, alone and beside a copy on another stream: how much each is slowed.
"""
import time

import torch

from instrument import Budget, Rows, clocks, header, read_options, summary, synchronize, warm_up

MIB = 2**20


def timed_once(device, issue):
    """Microseconds from the first launch to the end, by the host's clock: right for what takes hundreds."""
    synchronize(device)
    began = time.perf_counter()
    issue()
    synchronize(device)
    return (time.perf_counter() - began) * 1e6


def record_single(rows, budget, device, sizes):
    for size in sizes:
        def one_way():
            gpu = torch.empty(size, dtype=torch.uint8, device=device)
            other = torch.empty_like(gpu)
            gpu.random_(0, 256)
            hosts = {'pageable': torch.zeros(size, dtype=torch.uint8)}
            if device == 'cuda':
                hosts['pinned'] = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
            for kind, host in hosts.items():
                for way, call in (('to_gpu', lambda h=host: gpu.copy_(h, non_blocking=True)),
                                  ('to_host', lambda h=host: h.copy_(gpu, non_blocking=True))):
                    call()
                    time_us = summary([timed_once(device, call) for _ in range(9)])
                    yield {'copy': way, 'memory': kind, 'bytes': size,
                           'gb_per_s': round(size / time_us['us'] / 1e3, 2), **time_us}
            repeats = max(1, min(100, 4 * 2**30 // size)) if device == 'cuda' else 1

            def within():
                for _ in range(repeats):
                    other.copy_(gpu)
            within()
            time_us = summary([timed_once(device, within) / repeats for _ in range(9)])
            yield {'copy': 'within', 'memory': 'gpu', 'bytes': size,
                   'gb_per_s': round(2 * size / time_us['us'] / 1e3, 2), **time_us}
        rows.attempt(budget, 'copy of %d bytes' % size, one_way)


def record_both_ways(rows, budget, size):
    def at_once():
        gpu_a, gpu_b = (torch.empty(size, dtype=torch.uint8, device='cuda') for _ in range(2))
        host_a, host_b = (torch.zeros(size, dtype=torch.uint8, pin_memory=True) for _ in range(2))
        up, down = torch.cuda.Stream(), torch.cuda.Stream()

        def issue():
            with torch.cuda.stream(up):
                gpu_a.copy_(host_a, non_blocking=True)
            with torch.cuda.stream(down):
                host_b.copy_(gpu_b, non_blocking=True)
        issue()
        time_us = summary([timed_once('cuda', issue) for _ in range(9)])
        yield {'both': 'to_gpu and to_host', 'bytes_each': size,
               'gb_per_s_each': round(size / time_us['us'] / 1e3, 2), **time_us}
    rows.attempt(budget, 'both ways', at_once)


def stream_us(stream, call, repeats):
    """Queues repeats of call on the stream; the events say when they began and ended."""
    with torch.cuda.stream(stream):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        for _ in range(repeats):
            call()
        last.record()
    return first, last


def record_beside(rows, budget):
    main, side = torch.cuda.Stream(), torch.cuda.Stream()
    a = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)
    product = torch.empty_like(a)
    x, y = (torch.randn(2**28, device='cuda') for _ in range(2))
    size = 1024 * MIB
    gpu, other = (torch.empty(size, dtype=torch.uint8, device='cuda') for _ in range(2))
    pinned = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
    compute = {'matrix product': lambda: torch.mm(a, a, out=product), 'add': lambda: torch.add(x, y, out=y)}
    copies = {'to_gpu': lambda: gpu.copy_(pinned, non_blocking=True),
              'to_host': lambda: pinned.copy_(gpu, non_blocking=True), 'within': lambda: other.copy_(gpu)}

    def length(stream, call):
        events = stream_us(stream, call, 3)
        torch.cuda.synchronize()
        return events[0].elapsed_time(events[1]) / 3

    for compute_name, kernel in compute.items():
        for copy_name, copy in copies.items():
            def slowed():
                kernel(), copy()
                alone, copy_alone = length(main, kernel), length(side, copy)
                # Each as often as fills the same time, so that the shorter one does not end early.
                span = max(20.0, 3 * alone, 3 * copy_alone)
                n_kernel, n_copy = max(3, int(span / alone)), max(3, int(span / copy_alone))
                torch.cuda.synchronize()
                kernels, moves = stream_us(main, kernel, n_kernel), stream_us(side, copy, n_copy)
                torch.cuda.synchronize()
                beside = kernels[0].elapsed_time(kernels[1]) / n_kernel
                copy_beside = moves[0].elapsed_time(moves[1]) / n_copy
                yield {'beside': compute_name, 'copy': copy_name, 'alone_us': round(alone * 1e3, 1),
                       'beside_us': round(beside * 1e3, 1), 'copy_alone_us': round(copy_alone * 1e3, 1),
                       'copy_beside_us': round(copy_beside * 1e3, 1), 'slowdown': round(beside / alone, 4),
                       'copy_slowdown': round(copy_beside / copy_alone, 4)}
            rows.attempt(budget, '%s beside %s' % (compute_name, copy_name), slowed)


def main():
    options = read_options(__doc__)
    rows, budget = Rows(options.output, header(options)), Budget(options.seconds)
    cuda = options.device == 'cuda'
    warm_up(options.device)
    sizes = [256 * MIB, 64 * MIB, 16 * MIB, 4 * MIB, MIB, 256 * 1024, 64 * 1024, 4096]
    record_single(rows, budget, options.device, [1024 * MIB] + sizes if cuda else sizes[2:])
    if cuda:
        record_both_ways(rows, budget, 1024 * MIB)
        rows.attempt(budget, 'beside', lambda: record_beside(rows, budget) or ())
        rows.add(clocks='after the copies', **clocks())
    rows.close(budget, options.device)


if __name__ == '__main__':
    main()

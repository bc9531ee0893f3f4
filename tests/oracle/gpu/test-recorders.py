"""What reads the recorders' files, on files whose answer is known; and, where there is a Python with PyTorch
(FORESHARD_TORCH_PYTHON, or this one), the recorders themselves in small.

    test-recorders.py SOURCE-ROOT FORESHARD CHECK-MEMORY FIT-GEMM
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT, FORESHARD, CHECK_MEMORY, FIT_GEMM = sys.argv[1:5]
HERE = os.path.join(ROOT, 'tests', 'oracle', 'gpu')
sys.path[:0] = [os.path.join(ROOT, 'tests', 'style'), HERE]

from snapshot import condensed  # noqa: E402
from tap import Tap  # noqa: E402

SAMPLES = sorted(glob.glob(os.path.join(HERE, 'samples', 'memory-*.jsonl')))
TOY = os.path.join(HERE, 'samples', 'memory-gpt-toy-fsdp2-w8.jsonl')
CUDA = {'date': '2026-01-02', 'device': 'cuda', 'torch': '2.11.0', 'gpu': 'NVIDIA H200', 'driver': '580.1',
        'compute_capability': 90, 'sms': 132, 'memory_bytes': 150_000_000_000, 'host': '16 x a processor'}


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, **more)


def expect(what, run_result, status, *texts):
    """Complaints when the status is another, or a text is not in what was printed."""
    said = run_result.stdout + run_result.stderr
    complaints = [] if run_result.returncode == status else [
        '%s: status %d, not %d' % (what, run_result.returncode, status)]
    complaints += ['%s: does not say "%s"' % (what, text) for text in texts if text not in said]
    return complaints + (said.split('\n')[-12:] if complaints else [])


def write(folder, name, lines):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.writelines(json.dumps(line) + '\n' for line in lines)
    return path


def changed(folder, change):
    """A sample with change(summary's phases, step) applied to each step."""
    with open(TOY, encoding='utf-8') as file:
        lines = [json.loads(line) for line in file]
    for line in lines:
        if 'summary' in line:
            change(line['summary'], line['summary']['step'])
    return write(folder, 'changed.jsonl', lines)


# ---- check-memory ----------------------------------------------------------------------------------

def one_percent_more(summary, step):
    if step == 2:
        summary['phases']['backward']['allocated_peak'] *= 1.01


def far_too_much_reserved(summary, step):
    for phase in summary['phases'].values():
        phase.update({'reserved': 10**9, 'reserved_peak': 10**9})


def with_workspaces(summary, step):
    summary['workspace_bytes'] = 33554432
    for phase in summary['phases'].values():
        for key in phase:
            phase[key] += 33554432


def check_memory_cases(tap, folder):
    complaints = []
    for sample in SAMPLES:
        complaints += expect(sample, run(CHECK_MEMORY, sample), 0, 'allocated holds: off by +0.000 %')
    tap.case('/oracle/gpu/allocated bytes of each phase are PyTorch\'s', complaints or (
        [] if len(SAMPLES) >= 6 else ['samples are missing']))
    tap.case('/oracle/gpu/one per cent more is found', expect(
        'changed', run(CHECK_MEMORY, changed(folder, one_percent_more)), 1,
        'allocated MISSES', 'step 2, backward, at most'))
    tap.case('/oracle/gpu/reserved bytes are compared where they are', expect(
        'changed', run(CHECK_MEMORY, changed(folder, far_too_much_reserved)), 1, 'reserved  MISSES', 'allocated holds'))
    tap.case('/oracle/gpu/workspaces are taken off', expect(
        'changed', run(CHECK_MEMORY, changed(folder, with_workspaces)), 0, 'allocated holds: off by +0.000 %'))
    torn = os.path.join(folder, 'torn.jsonl')
    with open(TOY, encoding='utf-8') as whole, open(torn, 'w', encoding='utf-8') as file:
        file.write(whole.read()[:-40])
    other = os.path.join(ROOT, 'tests', 'oracle', 'recordings', 'gpt-none.jsonl')
    tap.case('/oracle/gpu/what is no record of memory is refused',
             expect('torn', run(CHECK_MEMORY, torn), 2, 'torn.jsonl:4: no JSON object') +
             expect('other', run(CHECK_MEMORY, other), 2, 'no record of memory by phase'))


# ---- cluster_file.py -------------------------------------------------------------------------------

def made_up_results(folder):
    """Files whose cluster file is known: a GPU with round numbers."""
    write(folder, 'kernels.jsonl', [
        {'header': CUDA}, {'launch': 'tiny kernels in a row', 'us': 2.25},
        *({'kernel': op, 'shape': 'x', 'dtype': 'bf16', 'bytes': 2 * 10**8, 'gb_per_s': rate, 'us': 1}
          for op, rate in (('copy', 4320), ('add', 4080), ('mul', 4200), ('layernorm', 2400))),
        {'kernel': 'gelu_tanh', 'shape': 'x', 'dtype': 'bf16', 'bytes': 10**6, 'gb_per_s': 9999, 'us': 1},
        {'kernel': 'adamw fused', 'shape': 'x', 'dtype': 'fp32', 'bytes': 10**9, 'gb_per_s': 4000, 'us': 1},
        {'end': {'left_out': []}}])
    write(folder, 'host.jsonl', [
        {'header': CUDA}, {'call': 'alloc', 'size': '3 MiB', 'us': 1.5}, {'call': 'free', 'size': '3 MiB', 'us': 0.75},
        {'call': 'record', 'us': 1.25}, {'call': 'zeros', 'us': 4}, {'call': 'zeros + mark', 'us': 6.5},
        {'malloc': 'cudaMalloc', 'bytes': 20 * 2**20, 'alive': 100, 'us': 210},
        {'malloc': 'cudaFree', 'bytes': 20 * 2**20, 'alive': 100, 'us': 180},
        *({'block': 'gpt', 'mode': mode, 'phase': phase, 'us': us} for mode, phase, us in (
            ('none', 'forward', 150), ('none', 'backward', 250), ('fsdp2', 'forward', 400), ('fsdp2', 'backward', 700)))])
    write(folder, 'copies.jsonl', [
        {'header': CUDA}, *({'copy': way, 'memory': 'pinned', 'bytes': 2**30, 'gb_per_s': rate}
                            for way, rate in (('to_gpu', 55.5), ('to_host', 53.5)))])
    made_up_products(os.path.join(folder, 'products.csv'))


def made_up_products(path):
    """Products that take 5 us and their arithmetic at 0.7 of the peak."""
    from_table = os.path.join(ROOT, 'tests', 'validation', 'gemm.csv')
    with open(from_table, encoding='utf-8') as table, open(path, 'w', encoding='utf-8') as file:
        columns = table.readline().strip()
        file.write(columns + '\n')
        for m in (1024, 2048, 4096, 8192):
            for n in (1024, 4096, 12288):
                for k in (1024, 4096):
                    row = dict.fromkeys(columns.split(','), '') | {
                        'source': 'test', 'hardware': 'NVIDIA H200', 'kind': 'gemm', 'dtype': 'bf16',
                        'out_dtype': 'bf16', 'batch': '1', 'm': str(m), 'n': str(n), 'k': str(k), 'layout': 'TN',
                        'time_us': '%.3f' % (5 + 2 * m * n * k / (0.7 * 989.4e6))}
                    file.write(','.join(row.values()) + '\n')


def cluster_file(folder, *more):
    return run(sys.executable, '-B', os.path.join(HERE, 'cluster_file.py'), folder, '--base',
               os.path.join(ROOT, 'models', 'clusters', 'h200-node.ini'), '-o', os.path.join(folder, 'made.ini'),
               '--foreshard', FORESHARD, *more)


def cluster_file_cases(tap, folder):
    made_up_results(folder)
    complaints = expect('cluster_file.py', cluster_file(folder, '--fit-gemm', FIT_GEMM), 0, 'numbers measured')
    text = ''
    if not complaints:
        with open(os.path.join(folder, 'made.ini'), encoding='utf-8') as file:
            text = file.read()
    wanted = ['model = NVIDIA H200', 'memory_bytes = 150000000000', 'memory_efficiency = 0.875',
              'reduction_efficiency = 0.5', 'host_link_gb_per_s = 53.5', 'launch_overhead_ns = 2250', 'copy = 4320',
              'adam_fused = 4000', 'segment_new_us = 210', 'segment_free_us = 180', 'alloc_us = 1.5', 'free_us = 0.75',
              'mark_us = 2.5', 'record_us = 1.25', 'watts = 700', 'gpus_per_node = 8', 'wait_us = 1\n']
    complaints += ['lacks "%s"' % line for line in wanted if '\n' + line.strip('\n') + '\n' not in text]
    if 'gelu_tanh' in text:
        complaints.append('takes the rate of a small tensor, which lay in a cache')
    complaints += expect('predict', run(FORESHARD, 'predict', 'gpt-toy', '-n', '8', '--cluster',
                                        os.path.join(folder, 'made.ini')), 0, 'step')
    tap.case('/oracle/gpu/a cluster file holds what was measured', complaints)
    values = dict(line.split(' = ', 1) for line in text.split('\n') if ' = ' in line)
    launch = float(values.get('launch_us', 0))
    # A GPT block's passes in PyTorch: some thirty launches; 400 us less the allocations' share.
    tap.case('/oracle/gpu/a launch costs what a block leaves for it', [] if 8 < launch < 14 and float(
        values['collective_us']) > launch else ['launch_us = %g, collective_us = %s' % (
            launch, values.get('collective_us'))])
    tap.case('/oracle/gpu/products are read as published ones are', expect('validate', run(
        FORESHARD, 'validate', '--brief', os.path.join(folder, 'products.csv')), 0, '24 rows'))
    with open(os.path.join(folder, 'host.jsonl'), 'a', encoding='utf-8') as file:
        file.write('{"call":')
    tap.case('/oracle/gpu/a damaged result is named with its line', expect(
        'damaged', cluster_file(folder), 2, 'host.jsonl:13: no JSON'))
    for name in ('kernels', 'host', 'copies'):
        write(folder, name + '.jsonl', [{'header': CUDA | {'device': 'cpu'}}])
    tap.case('/oracle/gpu/a CPU\'s results make no cluster file', expect(
        'cpu', cluster_file(folder), 2, 'recorded without a GPU'))


# ---- snapshot.py -----------------------------------------------------------------------------------

def snapshot_case(tap):
    def block(action, address, size, name='forward'):
        return {'action': action, 'addr': address, 'size': size, 'stream': 0,
                'frames': [{'filename': 'somewhere/networks.py', 'name': name, 'line': 7}]}
    trace = [block('alloc', 1, 100), block('segment_alloc', 9, 2 << 20), block('alloc', 2, 300, 'attend'),
             block('free_requested', 1, 100), block('free_completed', 1, 100), block('alloc', 3, 50),
             block('free_requested', 77, 5), block('free_requested', 2, 300)]
    segments = [{'total_size': 2 << 20, 'stream': 5, 'segment_type': 'small', 'allocated_size': 512, 'active_size': 512},
                {'total_size': 2 << 20, 'stream': 5, 'segment_type': 'small', 'allocated_size': 0, 'active_size': 512}]
    made = condensed({'device_traces': [trace], 'segments': segments}, with_events=True)
    wanted = {'segments': [[2 << 20, 0, 'small', 2, 512, 1024]],
              'actions': {'alloc': 3, 'segment_alloc': 1, 'free_requested': 3, 'free_completed': 1},
              'at_peak': {'bytes_of_the_step': 400, 'others': 0,
                          'owners': [[300, 1, 'networks.py:attend:7'], [100, 1, 'networks.py:forward:7']]},
              'events': 'a100 s2097152 a300 f0 a50 f- f1'}
    tap.case('/oracle/gpu/a snapshot keeps the peak and its owners', [] if made == wanted else [str(made)])


# ---- the recorders -----------------------------------------------------------------------------------

def torch_python():
    for python in (os.environ.get('FORESHARD_TORCH_PYTHON'), sys.executable):
        if python and run(python, '-c', 'import torch; assert torch.__version__ >= "2.11"').returncode == 0:
            return python
    return None


def recorder_cases(tap, folder):
    python = torch_python()
    recorders = {'kernels': ['--products', os.path.join(folder, 'p.csv')], 'host': [], 'copies': [], 'training': []}
    for name, more in recorders.items():
        case = '/oracle/gpu/record_%s runs on a CPU' % name
        if not python:
            tap.skip(case, 'no Python with PyTorch; FORESHARD_TORCH_PYTHON names one')
            continue
        path = os.path.join(folder, name + '.jsonl')
        done = run(python, '-B', os.path.join(HERE, 'record_%s.py' % name), '--device', 'cpu', '--seconds', '3',
                   '--output', path, *more)
        complaints = expect(name, done, 0)
        if not complaints:
            with open(path, encoding='utf-8') as file:
                rows = [json.loads(line) for line in file]
            # The seconds may suffice for one measurement alone.
            good = 'header' in rows[0] and 'end' in rows[-1] and len(rows) >= 3
            complaints = [] if good else ['%d rows' % len(rows)]
        tap.case(case, complaints)
    for case, check in (('makes what check-memory reads', memory_is_read),
                        ('goes on after a case that fails', each_is_tried)):
        if python:
            tap.case('/oracle/gpu/record_memory ' + case, check(python, folder))
        else:
            tap.skip('/oracle/gpu/record_memory ' + case, 'no Python with PyTorch; FORESHARD_TORCH_PYTHON names one')


def cuda_cases(tap, folder):
    """What recorders do only where a GPU is, on tensors without memory and a torch.cuda that pretends."""
    python = torch_python()
    for name, seconds in (('memory', '0'), ('copies', '15'), ('kernels', '10'), ('host', '10'), ('training', '10')):
        case = '/oracle/gpu/record_%s is sound where only a GPU goes' % name
        if not python:
            tap.skip(case, 'no Python with PyTorch; FORESHARD_TORCH_PYTHON names one')
            continue
        more = ['--products', os.path.join(folder, 'pc.csv')] if name == 'kernels' else []
        tap.case(case, expect(name, run(
            python, '-B', os.path.join(HERE, 'pretend_cuda.py'), 'record_%s.py' % name, '--device', 'cuda', '--seconds',
            seconds, '--output', os.path.join(folder, 'pc.jsonl'), *more), 0))


def memory_is_read(python, folder):
    path = os.path.join(folder, 'memory-llama.jsonl')
    done = run(python, '-B', os.path.join(HERE, 'record_memory.py'), '--device', 'cpu', '--preset', 'llama-toy',
               '--mode', 'fsdp2', '--world', '512', '--checkpointing', 'inside', '--output', path)
    return expect('record_memory.py', done, 0) or expect(
        'check-memory', run(CHECK_MEMORY, path), 0, 'allocated holds: off by +0.000 %')


def each_is_tried(python, folder):
    toy = '--device cpu --preset gpt-toy --mode fsdp2 --steps 2 '
    listed = os.path.join(folder, 'cases')
    with open(listed, 'w', encoding='utf-8') as file:
        file.write('%s/bad.jsonl\t%s--accumulate 2\n%s/good.jsonl\t%s\n' % (folder, toy, folder, toy))
    done = run(python, '-B', os.path.join(HERE, 'record_memory.py'), '--each', listed, '--seconds', '100')
    return expect('record_memory.py', done, 1, 'bad.jsonl: status 1', 'good.jsonl: recorded') + expect(
        'check-memory', run(CHECK_MEMORY, os.path.join(folder, 'good.jsonl')), 0, 'allocated holds')


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        check_memory_cases(tap, folder)
        cluster_file_cases(tap, folder)
        snapshot_case(tap)
        recorder_cases(tap, folder)
        cuda_cases(tap, folder)
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())

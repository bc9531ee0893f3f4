"""tests/oracle/gpu/instrument.py - what the recorders share: device, clocks, result files.

A result file is JSON lines: first {"header": {...}} (date, GPU, driver, versions), then one object a
measurement. Products and attention go into a CSV with the columns of tests/validation/gemm.csv, so that
`foreshard validate` and bench/fit-gemm read it as they read published tables.

On device "cpu" everything runs in small, timed by the host's clock: that tries the recorders where no GPU is.
Such files say device "cpu", and cluster_file.py refuses to make a GPU's cluster file of them.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import torch

SPIN_CYCLES_PER_US = 2600  # 1.3 times the highest clock, so that the host is through before the spin ends


def read_options(description, extra=lambda parser: None):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument('--device', choices=('cuda', 'cpu'), default='cuda')
    parser.add_argument('--output', required=True, help='the file to write')
    parser.add_argument('--seconds', type=float, default=1e9,
                        help='no new measurement begins after this; what was left out is named')
    extra(parser)
    options = parser.parse_args()
    if options.device == 'cuda' and not torch.cuda.is_available():
        sys.exit(parser.prog + ': no GPU here; --device cpu tries the program in small')
    if options.device == 'cpu':
        torch.set_num_threads(1)
    return options


def asked_of_nvidia_smi(*what):
    """What nvidia-smi says of the first GPU; None without it."""
    try:
        answer = subprocess.run(['nvidia-smi', '--id=0', '--query-gpu=' + ','.join(what),
                                 '--format=csv,noheader,nounits'],
                                capture_output=True, text=True, timeout=20, check=True)
        return [field.strip() for field in answer.stdout.strip().split(',')]
    except (OSError, subprocess.SubprocessError):
        return None


def clocks():
    """Clocks in MHz, power in watts, temperature in degrees Celsius, as they are now."""
    names = ('clocks.sm', 'clocks.mem', 'power.draw', 'temperature.gpu')
    answer = asked_of_nvidia_smi(*names)
    return dict(zip(names, answer)) if answer else {}


def processor():
    with open('/proc/cpuinfo', encoding='utf-8') as lines:
        names = [line.split(':', 1)[1].strip() for line in lines if line.startswith('model name')]
    return '%d x %s' % (len(names), names[0]) if names else platform.machine()


def or_none(ask):
    """A version that cannot be told is no reason not to measure."""
    try:
        return ask()
    except (RuntimeError, ValueError, AttributeError):
        return None


def header(options):
    facts = {'date': datetime.date.today().isoformat(), 'device': options.device,
             'torch': torch.__version__, 'python': platform.python_version(),
             'host': processor(), 'kernel': platform.release()}
    if options.device == 'cuda':
        properties = torch.cuda.get_device_properties(0)
        driver = asked_of_nvidia_smi('driver_version')
        facts |= {'gpu': properties.name, 'driver': driver[0] if driver else '',
                  'compute_capability': properties.major * 10 + properties.minor,
                  'sms': properties.multi_processor_count,
                  'memory_bytes': torch.cuda.mem_get_info()[1],
                  'cuda': torch.version.cuda, 'cudnn': or_none(torch.backends.cudnn.version),
                  'nccl': or_none(lambda: '.'.join(map(str, torch.cuda.nccl.version()))),
                  'clocks_at_start': clocks()}
    else:
        facts['gpu'] = 'none (the recorder was tried on a CPU)'
    return facts


class Budget:
    """Says whether another measurement may begin, and remembers what did not."""

    def __init__(self, seconds):
        self.until = time.monotonic() + seconds
        self.left_out = []

    def allows(self, name):
        if time.monotonic() < self.until:
            return True
        self.left_out.append(name)
        return False


class Rows:
    """A JSON lines file, written as it comes: what was measured before a failure is kept."""

    def __init__(self, path, head):
        self.file = open(path, 'w', encoding='utf-8')
        self.add(header=head)

    def add(self, **row):
        self.file.write(json.dumps(row, separators=(',', ':')) + '\n')
        self.file.flush()

    def attempt(self, budget, name, measure):
        """Adds what measure() returns, or why it failed; the next one goes on."""
        if not budget.allows(name):
            return
        try:
            for row in measure():
                self.add(**row)
        except Exception as error:  # whatever it is, the next measurement is worth having
            why = (str(error).splitlines() or [''])[0][:200]
            self.add(failed=name, why=why)
            print('failed: %s: %s' % (name, why), file=sys.stderr)

    def close(self, budget, device):
        """The last line names what the time did not suffice for."""
        self.add(end={'left_out': budget.left_out,
                      'clocks_at_end': clocks() if device == 'cuda' else {}})
        self.file.close()


PRODUCT_COLUMNS = (
    'source source_ref measured_date hardware kind dtype out_dtype batch m n k layout accumulate extra_shape '
    'time_us tflops stat pct_of_peak peak_tflops_used software value_origin notes').split()


class ProductTable:
    """Rows in the form of tests/validation/gemm.csv."""

    def __init__(self, path, head):
        self.head = head
        self.file = open(path, 'w', encoding='utf-8', newline='')
        self.writer = csv.DictWriter(self.file, PRODUCT_COLUMNS, restval='', lineterminator='\n')
        self.writer.writeheader()

    def add(self, **row):
        head = self.head
        self.writer.writerow({
            'source': 'foreshard', 'source_ref': 'tests/oracle/gpu/record_kernels.py',
            'measured_date': head['date'], 'hardware': head['gpu'], 'stat': 'median, CUDA events',
            'software': 'torch %s, CUDA %s, driver %s' % (head['torch'], head.get('cuda', 'none'),
                                                          head.get('driver', 'none')),
            'value_origin': 'measured', **row})
        self.file.flush()

    def close(self):
        self.file.close()


def summary(samples_us):
    """Median and the 10th and 90th percentile of times in microseconds."""
    ordered = sorted(samples_us)
    return {'us': round(statistics.median(ordered), 4), 'us_p10': round(ordered[len(ordered) // 10], 4),
            'us_p90': round(ordered[len(ordered) * 9 // 10], 4), 'n': len(ordered)}


def synchronize(device):
    if device == 'cuda':
        torch.cuda.synchronize()


def warm_up(device, seconds=0.5):
    """A GPU at rest has a low clock (an H200 345 of 1980 MHz), and takes some time to leave it."""
    if device == 'cuda':
        x = torch.randn(4096, 4096, device=device, dtype=torch.bfloat16)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            x @ x
            torch.cuda.synchronize()
        del x
        torch.cuda.empty_cache()


def device_us(device, call, inputs, samples=15, target_us=400):
    """Median times of one call on the device. `inputs` are alternatives that are taken in turn, so that what is
    timed does not lie in a cache; call(input) must not synchronize. Between two events lie so many
    calls that clock ticks and event costs vanish; a kernel that spins lets the host run ahead, so
    that gaps between launches are the device's own."""
    turn = [0]

    def step():
        call(inputs[turn[0] % len(inputs)])
        turn[0] += 1

    for _ in range(3):
        step()
    synchronize(device)
    began = time.perf_counter()
    step()
    issue_us = (time.perf_counter() - began) * 1e6
    synchronize(device)
    once_us = (time.perf_counter() - began) * 1e6
    inner = max(1, min(40, int(target_us / max(once_us, 1))))
    if device == 'cpu':
        times = []
        for _ in range(samples):
            began = time.perf_counter()
            for _ in range(inner):
                step()
            times.append((time.perf_counter() - began) * 1e6 / inner)
        return summary(times)
    pairs = []
    for _ in range(samples):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(int(SPIN_CYCLES_PER_US * issue_us * (inner + 2)))
        first.record()
        for _ in range(inner):
            step()
        last.record()
        pairs.append((first, last))
    torch.cuda.synchronize()
    return summary([a.elapsed_time(b) * 1e3 / inner for a, b in pairs])


def host_us(device, call, calls=200, samples=7):
    """Median host time of one call, the device left behind: what issuing it costs."""
    for _ in range(10):
        call()
    times = []
    for _ in range(samples):
        synchronize(device)
        began = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - began) * 1e6 / calls)
    synchronize(device)
    return summary(times)


def rotated(make, bytes_each, device, at_least=256 * 2**20):
    """So many inputs, made one by one, that together they outgrow any cache (H200: 60 MB of L2)."""
    wanted = -(-at_least // max(bytes_each, 1)) if device == 'cuda' else 2
    return [make() for _ in range(max(2, min(16, wanted)))]


def find_recorder():
    """Lets the recorder's networks and wrappers (tests/oracle/recorder) be imported."""
    sys.path.insert(1, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'recorder'))

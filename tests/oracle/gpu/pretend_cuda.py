"""tests/oracle/gpu/pretend_cuda.py - runs a recorder's --device cuda where no GPU is, to find what is wrong with it.

    pretend_cuda.py RECORDER.py OPTIONS...

Minutes with a GPU are few, and a wrong name in a line that only they reach costs them. So the recorder's own code runs
as it would there: tensors have shapes and no memory (PyTorch's fake tensors, on the CPU), and what it asks of torch.cuda
is answered by stand-ins that do nothing. A stand-in exists only where torch.cuda has such a name, with that name's
own arguments where PyTorch states them in Python, so that a name that PyTorch does not have, or an argument it does not
take, fails here as it would there. What is written means nothing; rows that failed are named, and are the exit status.

What no stand-in can tell: whether the numbers are right, and what the driver refuses. FSDP wants numbers in its
tensors: its rows fail here, and are tried by --device cpu. Of record_memory.py only what reads the allocator is tried.
"""
import contextlib
import functools
import inspect
import json
import os
import sys
import types
from collections import defaultdict

import torch
import torch.nn.attention
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

HERE = os.path.dirname(os.path.abspath(__file__))
TOTAL_BYTES = 150 * 10**9
NOT_HERE = ('block fsdp1', 'block fsdp2')


# ---- tensors -------------------------------------------------------------------------------------

def on_cpu(value):
    """A device named cuda becomes the CPU."""
    if isinstance(value, torch.device) and value.type == 'cuda' or isinstance(value, str) and value.split(':')[0] == 'cuda':
        return torch.device('cpu')
    return value


class OnCpu(TorchFunctionMode):
    """What is asked for on the GPU, pinned or not, is made on the CPU."""

    def __torch_function__(self, function, kinds, args=(), kwargs=None):
        kwargs = {key: on_cpu(value) for key, value in (kwargs or {}).items() if key != 'pin_memory'}
        if getattr(function, '__name__', '') in ('to', 'type'):
            args = tuple(on_cpu(value) for value in args)
        if getattr(function, '__name__', '') in ('item', '__float__'):  # a fake tensor has no number
            return 0.5
        return function(*args, **kwargs)


# ---- torch.cuda ------------------------------------------------------------------------------------

class Event:
    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False):
        self.timed = enable_timing

    def record(self, stream=None):
        pass

    def wait(self, stream=None):
        pass

    def query(self):
        return True

    def synchronize(self):
        pass

    def elapsed_time(self, end_event):
        if not (self.timed and end_event.timed):
            raise ValueError('Both events must be created with argument \'enable_timing=True\'.')
        return 1.0


class Stream:
    def __init__(self, device=None, priority=0, **_):
        self.device = torch.device('cpu')

    def wait_event(self, event):
        pass

    def wait_stream(self, stream):
        pass

    def record_event(self, event=None):
        return event or Event()

    def query(self):
        return True

    def synchronize(self):
        pass

    def is_capturing(self):
        return False


@contextlib.contextmanager
def stream_scope(stream):
    yield


def answers():
    """name under torch.cuda -> what stands in for it."""
    properties = types.SimpleNamespace(name='NVIDIA H200 (pretended)', major=9, minor=0, multi_processor_count=132,
                                       total_memory=TOTAL_BYTES)
    nothing, zero = (lambda *_, **__: None), (lambda *_, **__: 0)
    return {'is_available': lambda: True, 'is_initialized': lambda: False, 'init': nothing, 'set_device': nothing,
            'current_device': zero, 'device_count': lambda: 1, 'synchronize': nothing, '_sleep': nothing,
            'empty_cache': nothing, 'Event': Event, 'Stream': Stream, 'current_stream': lambda *_: Stream(),
            'default_stream': lambda *_: Stream(), 'stream': stream_scope, 'memory_stats': lambda *_: defaultdict(int),
            'memory_allocated': zero, 'memory_reserved': zero, 'max_memory_allocated': zero, 'max_memory_reserved': zero,
            'is_current_stream_capturing': lambda: False, 'reset_peak_memory_stats': nothing,
            'mem_get_info': lambda *_: (TOTAL_BYTES - 10**9, TOTAL_BYTES),
            'get_device_properties': lambda *_: properties, 'get_device_capability': lambda *_: (9, 0),
            'memory._record_memory_history': nothing,
            'memory._snapshot': lambda *_: {'device_traces': [[]], 'segments': []}, 'nccl.version': lambda: (2, 28, 9)}


def with_arguments_of(real, stand_in):
    """The stand-in, refusing what the real one would refuse; as it is where PyTorch states no arguments in Python."""
    try:
        signature = inspect.signature(real)
    except (TypeError, ValueError):
        return stand_in
    if inspect.isclass(real):
        return stand_in

    @functools.wraps(real)
    def checked(*args, **kwargs):
        signature.bind(*args, **kwargs)
        return stand_in(*args, **kwargs)
    return checked


def install():
    for name, stand_in in answers().items():
        *path, last = name.split('.')
        module = torch.cuda
        for part in path:
            module = getattr(module, part)
        setattr(module, last, with_arguments_of(getattr(module, last), stand_in))
    if hasattr(torch._C, '_cuda_clearCublasWorkspaces'):  # in builds with CUDA alone
        torch._C._cuda_clearCublasWorkspaces = lambda: None
    torch.backends.cudnn.version = lambda: 91900
    if hasattr(torch, 'accelerator'):  # asked by optimizers whether a graph is being captured
        torch.accelerator.current_device_index = lambda: 0
        torch.accelerator.current_stream = lambda *_: Stream()
    # PyTorch asks the GPU's driver which attention kernels it has: none is refused here.
    torch.nn.attention.sdpa_kernel = with_arguments_of(
        torch.nn.attention.sdpa_kernel, lambda *_, **__: contextlib.nullcontext())
    # Compiling takes minutes, and tries nothing of the recorder.
    torch.compile = lambda model, **_: model
    torch.nn.Module.compile = lambda self, **_: None
    torch.Tensor.record_stream = lambda self, stream: None  # wants a real one
    torch.nn.Module.to = lambda self, *_, **__: self  # it is where it is to be


class Runtime:
    """libcudart: every call succeeds."""

    def __getattr__(self, name):
        return lambda *_: 0


# ---- running a recorder ----------------------------------------------------------------------------

def failed_rows(path):
    with open(path, encoding='utf-8') as lines:
        return [row for row in map(json.loads, lines) if 'failed' in row and row['failed'] not in NOT_HERE]


def few_times(recorder):
    """Nothing is timed here: each measurement is made twice."""
    import instrument
    if hasattr(recorder, 'host_us'):
        recorder.host_us = lambda device, call, calls=200, samples=7: instrument.host_us(device, call, 2, 2)
    if hasattr(recorder, 'device_us'):
        recorder.device_us = lambda device, call, inputs, samples=15, target_us=400: instrument.device_us(
            device, call, inputs, 2, target_us)


def try_meter(recorder):
    """All that record_memory.py asks of the allocator."""
    options = types.SimpleNamespace(preset='gpt-toy', steps=1)
    meter = recorder.CudaMeter(options)
    with meter.world():
        meter.name_modules(None)
        meter.phase_begins('forward')
        meter.step_begins(0, options)
        print(json.dumps([meter.phase_ends(), meter.workspace_bytes(), meter.snapshot(options)]))
    return 0


def main():
    name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
    sys.argv[:1] = []
    sys.path.insert(0, HERE)
    torch.set_num_threads(1)
    install()
    recorder = __import__(name)
    if hasattr(recorder, 'CudaMeter'):
        return try_meter(recorder)
    if hasattr(recorder, 'cuda_runtime'):
        recorder.cuda_runtime = Runtime
    few_times(recorder)
    for fields in getattr(recorder, 'NETWORKS', {}).values():
        fields['layers'] = 2  # all are alike, and a fake op takes longer than a real one
    with FakeTensorMode(allow_non_fake_inputs=True), OnCpu():
        recorder.main()
    failed = failed_rows(sys.argv[sys.argv.index('--output') + 1])
    for row in failed:
        print('failed: %s: %s' % (row['failed'], row['why']))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())

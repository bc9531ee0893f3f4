"""tests/oracle/gpu/record_memory.py - what PyTorch's allocator holds at the end of each phase of a step.

    record_memory.py --preset gpt2-xl --no-tied --mode fsdp2 --world 8 --param-dtype bf16 --output FILE
        [--group fake|single] [--workspaces none|default] [--device cpu]

    record_memory.py --each LIST [--seconds S]

The second form records several, one after the other, each in a process of its own that need not import PyTorch anew.
LIST has a line for each: its output, a tab, and its options.

Options for network and parallelism are those of ../recorder/record_fsdp.py, and so is the header, so that a plan
can be built from it (`check-memory` does). The process group is a fake one of any size, whose collectives take no time
and move nothing, or one real rank with NCCL.

What is compared with a plan starts as a plan does, the shards alone on the GPU when training begins: under fsdp2 each
in memory asked for by itself, under fsdp1 where wrapping unit after unit leaves it (the recorder's network is made
whole before it is wrapped, which leaves other holes). Workspaces of cuBLAS, which PyTorch takes from
its allocator and a plan leaves out, are turned off unless --workspaces default; what they held is
in each summary.

On device cpu (torch 2.13) tensors have no memory, and what is counted is what ../recorder counts: allocated bytes
rounded to 512, and no reserved ones.
"""
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import traceback
import warnings
from dataclasses import asdict

import torch

import instrument


def more_options(parser):
    parser.add_argument('--group', choices=('fake', 'single'), default='fake')
    parser.add_argument('--workspaces', choices=('none', 'default'), default='none', help="cuBLAS's")
    parser.add_argument('--real-start', action='store_true',
                        help='begin where construction leaves the allocator, not clean')
    from options import add_training_options
    add_training_options(parser)
    parser.set_defaults(steps=4)


# ---- what is counted: on a GPU -------------------------------------------------------------------

class CudaMeter:
    """Reads PyTorch's allocator and the driver."""

    has_holes = True  # construction leaves them in memory

    KEYS = {'allocated': 'allocated_bytes.all', 'active': 'active_bytes.all', 'reserved': 'reserved_bytes.all',
            'requested': 'requested_bytes.all'}

    def __init__(self, options):
        self.device = torch.device('cuda', 0)
        torch.cuda.set_device(0)
        # A plan's attention of 16-bit tensors is the flash kernel; PyTorch may prefer cuDNN's on new GPUs.
        torch.backends.cuda.enable_cudnn_sdp(False)

    def world(self):
        return contextlib.nullcontext()

    def name_modules(self, network):
        pass

    def phase_begins(self, name):
        torch.cuda.reset_peak_memory_stats()

    def phase_ends(self):
        stats = torch.cuda.memory_stats()
        row = {key: stats[name + '.current'] for key, name in self.KEYS.items()}
        row |= {key + '_peak': stats[name + '.peak'] for key, name in self.KEYS.items()}
        free, total = torch.cuda.mem_get_info()
        return row | {'retries': stats['num_alloc_retries'], 'segments': stats['segment.all.current'],
                      'device_used': total - free}

    def step_begins(self, step, options):
        if step == options.steps - 1:
            torch.cuda.memory._record_memory_history(max_entries=200000, stacks='python')

    def workspace_bytes(self):
        """What cuBLAS holds, told by giving it back."""
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch._C._cuda_clearCublasWorkspaces()
        return before - torch.cuda.memory_allocated()

    def snapshot(self, options):
        import snapshot
        taken = torch.cuda.memory._snapshot()
        torch.cuda.memory._record_memory_history(enabled=None)
        return snapshot.condensed(taken, with_events=options.preset.endswith('-toy'))


# ---- what is counted: without a GPU --------------------------------------------------------------

class PretendMeter:
    """Adds up what ../recorder sees."""

    has_holes = False

    def __init__(self, options):
        import fake_gpu
        import fsdp_marks
        from recorder import Recorder
        from torch._subclasses.fake_tensor import FakeTensorMode
        self.library = fake_gpu.create()
        self.device = torch.device(fake_gpu.DEVICE_TYPE, 0)
        self.recorder = Recorder(self.device.type)
        fsdp_marks.install(self.recorder)
        fsdp_marks.give_fake_storages_addresses()
        self.fake = FakeTensorMode(allow_non_fake_inputs=True)
        self.bytes = {'allocated': 0, 'requested': 0}

    @contextlib.contextmanager
    def world(self):
        with self.fake, self.recorder:
            yield

    def name_modules(self, network):
        self.recorder.name_modules(network)

    def phase_begins(self, name):
        self.count()
        self.recorder.phase = name
        self.peak = dict(self.bytes)

    def count(self):
        peak = dict(self.bytes)
        for kind, block in self.recorder.take_entries():
            sign = {'alloc': 1, 'free': -1}.get(kind, 0)
            if sign:
                self.bytes['allocated'] += sign * block.rounded
                self.bytes['requested'] += sign * block.bytes
                peak = {key: max(peak[key], self.bytes[key]) for key in peak}
        return peak

    def phase_ends(self):
        self.peak = self.count()
        return self.bytes | {key + '_peak': value for key, value in self.peak.items()}

    def step_begins(self, step, options):
        pass

    def workspace_bytes(self):
        return 0

    def snapshot(self, options):
        return None


# ---- the run -------------------------------------------------------------------------------------

def start_clean(model, mode, device):
    """Gives the GPU back all it holds but the shards, and asks for those anew, one by one. Under fsdp1 each comes
    while its unit's parameters and the flat one are there, the root's last, as where a unit is made when it is wrapped."""
    if mode == 'fsdp1':
        from torch.distributed.fsdp import FullyShardedDataParallel
        handles = [m._handle for m in FullyShardedDataParallel.fsdp_modules(model) if m._handle]
        with torch.no_grad():
            kept = [handle.flat_param.detach().to('cpu', copy=True) for handle in handles]
            for handle in handles:
                handle.flat_param.data = handle.flat_param.new_empty(0)
                if handle._use_orig_params:
                    for parameter in handle.flat_param._params:
                        parameter.data = parameter.new_empty(0)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()
            for handle, host in [*zip(handles, kept)][1:] + [(handles[0], kept[0])]:
                whole = [torch.empty(n, dtype=host.dtype, device=device) for n in handle.flat_param._numels]
                flat = torch.empty(handle.flat_param._unpadded_unsharded_size, dtype=host.dtype, device=device)
                handle.flat_param.data = host.to(device, copy=True)
                del whole, flat
                if handle._use_orig_params:
                    handle._use_sharded_views()
    elif mode == 'fsdp2':
        model.to_empty(device=device)
        with torch.no_grad():
            for tensor in [*model.parameters(), *model.buffers()]:
                local = tensor.to_local() if hasattr(tensor, 'to_local') else tensor
                local.fill_(0.01) if local.is_floating_point() else local.zero_()


def build(options, shape, meter, mesh):
    """The wrapped model with its batch and optimizer, the batch first, as in ../recorder."""
    import networks
    import parallel
    clean = meter.has_holes and not options.real_start
    on_meta = clean and options.mode == 'fsdp2'
    torch.manual_seed(0)
    torch.set_default_dtype(parallel.DTYPES[options.model_dtype])
    with torch.device('meta') if on_meta else meter.device:
        network = networks.make_network(shape)
    torch.set_default_dtype(torch.float32)
    parameters = sum(p.numel() for p in network.parameters())
    meter.name_modules(network)
    model = parallel.wrap(network, options, mesh, meter.device)
    if clean:
        start_clean(model, options.mode, meter.device)
    batch = networks.make_batch(shape, options.batch, meter.device)
    return model, batch, parallel.make_optimizer(model, options), parameters


def train_step(model, optimizer, batch, options, meter):
    import parallel
    phases = {}
    meter.phase_begins('forward')
    loss = model(*batch)
    phases['forward'] = meter.phase_ends()
    meter.phase_begins('backward')
    loss.backward()
    del loss
    phases['backward'] = meter.phase_ends()
    meter.phase_begins('optimizer')
    if options.clip:
        parallel.clip([model], options.clip, options)
    optimizer.step()
    optimizer.zero_grad(set_to_none=not options.keep_gradients)
    phases['optimizer'] = meter.phase_ends()
    return phases


def start_group(options):
    if options.group == 'single':
        options.world = 1
        torch.distributed.init_process_group('nccl', rank=0, world_size=1, store=torch.distributed.HashStore(),
                                             device_id=torch.device('cuda', 0))
        return
    import parallel
    options.real = False
    parallel.start_process_group(options)


def settle(options):
    """What the plan must know of choices that PyTorch makes by itself."""
    if options.accumulate != 1:
        raise SystemExit('record_memory.py: phases are told apart in steps of one pass; leave --accumulate')
    if options.cpu_offload:
        raise SystemExit('record_memory.py: what lies on the host is not counted; leave --cpu-offload')
    if options.autocast or options.grad_scaler or options.compile or options.compile_network:
        raise SystemExit('record_memory.py: its step is eager and not under autocast; leave --autocast, --grad-scaler, '
                         '--compile and --compile-network')
    if options.mode == 'fsdp2' and options.tied and options.device == 'cuda' and not options.real_start:
        raise SystemExit('record_memory.py: a tied head cannot start clean under fsdp2; say --no-tied or --real-start')
    if options.optimizer_kernel == 'default' and options.device == 'cuda':
        options.optimizer_kernel = 'foreach'


CASE_SECONDS = 120


def record_each(path, seconds):
    """Each line of the list in a process of its own. Status 1 when one fails."""
    with open(path, encoding='utf-8') as lines:
        cases = [line.rstrip('\n').split('\t', 1) for line in lines]
    start = forked if can_fork() else started
    until, failed = time.monotonic() + seconds, 0
    for output, options in cases:
        if time.monotonic() > until:
            print('no time is left for ' + output)
            continue
        status = ended(start(['--output', output, *options.split()]))
        failed |= status != 0
        print('%s: %s' % (output, 'status %d' % status if status else 'recorded'), flush=True)
    return failed


def can_fork():
    """A child may use the GPU only if this process has not: asked of a child, after the slow imports."""
    instrument.find_recorder()
    import parallel  # noqa: F401
    if os.path.exists('/dev/nvidiactl'):
        return ended(forked(None)) == 0
    return True


def forked(arguments):
    """A child of this process that records one case, or only tries the GPU."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        if arguments is None:
            torch.cuda.init()
        else:
            sys.argv[1:] = arguments
            main()
        status = 0
    except SystemExit as error:
        print(error, file=sys.stderr)
    except Exception:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)


def started(arguments):
    return subprocess.Popen([sys.executable, '-B', os.path.abspath(__file__), *arguments]).pid


def ended(child):
    """The status of a child that has its time."""
    until = time.monotonic() + CASE_SECONDS
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            until = float('inf')
        time.sleep(0.02)


def main():
    warnings.filterwarnings('ignore')
    instrument.find_recorder()
    options = instrument.read_options(__doc__, more_options)
    if options.workspaces == 'none':  # asked for when cuBLAS is first used
        os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':0:0'
        os.environ['CUBLASLT_WORKSPACE_SIZE'] = '0'
    import parallel
    from options import make_shape
    shape = make_shape(options)
    options.tied = shape.tied
    settle(options)
    meter = CudaMeter(options) if options.device == 'cuda' else PretendMeter(options)
    start_group(options)
    mesh = parallel.make_mesh(options, meter.device.type)
    lines = []
    with meter.world():
        model, batch, optimizer, parameters = build(options, shape, meter, mesh)
        head = {'torch': torch.__version__, 'parameters': parameters, 'shape': asdict(shape),
                'machine': instrument.header(options),
                'options': {k: v for k, v in vars(options).items() if k not in ('output', 'seconds')}}
        meter.phase_begins('between steps')
        start = meter.phase_ends()
        for step in range(options.steps):
            meter.step_begins(step, options)
            phases = train_step(model, optimizer, batch, options, meter)
            lines.append({'summary': {'step': step, 'phases': {'start': start, **phases}}})
            start = phases['optimizer']
        condensed = meter.snapshot(options)
        workspaces = meter.workspace_bytes()
    for line in lines:
        line['summary']['workspace_bytes'] = workspaces
    torch.distributed.destroy_process_group()
    with open(options.output, 'w', encoding='utf-8') as file:
        for line in [{'header': head}, *lines, *([{'snapshot': condensed}] if condensed else [])]:
            file.write(json.dumps(line, separators=(',', ':')) + '\n')


if __name__ == '__main__':
    if '--each' in sys.argv[1:2]:
        sys.exit(record_each(sys.argv[2], float(sys.argv[4]) if '--seconds' in sys.argv[3:4] else 1e9))
    main()

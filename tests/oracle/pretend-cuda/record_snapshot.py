"""tests/oracle/pretend-cuda/record_snapshot.py - a memory snapshot by PyTorch's own allocator, and the peaks that it counted.

    run record_snapshot.py --preset gpt2 --layers 2 --mode fsdp1 --param-dtype bf16 --steps 3 --output NAME.pickle.gz
        [--entries 1000]

`run` is the one beside this file. Options for network and parallelism are those of ../recorder/record_fsdp.py. The last step's
peaks are printed as JSON. In the frames the folders of this machine are shortened.
"""
import argparse
import gzip
import json
import os
import pickle
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDER = os.path.join(os.path.dirname(HERE), 'recorder')
sys.path[:0] = [RECORDER]

import torch  # noqa: E402
import networks  # noqa: E402
import parallel  # noqa: E402
from options import add_training_options, make_shape  # noqa: E402

STATISTICS = ('allocated', 'active', 'reserved')


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--output', required=True)
    parser.add_argument('--entries', type=int, default=1000000, help='of the history, the last ones are kept')
    add_training_options(parser)
    options = parser.parse_args()
    options.real, options.device = False, 'cuda'
    if options.optimizer_kernel == 'default':
        options.optimizer_kernel = 'foreach'
    return options


def train(options):
    """The last step's peaks."""
    device = torch.device('cuda', 0)
    torch.cuda.set_device(0)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.cuda.memory._record_memory_history(stacks='python', max_entries=options.entries)
    shape = make_shape(options)
    options.tied = shape.tied
    parallel.start_process_group(options)
    mesh = parallel.make_mesh(options, 'cuda')
    torch.set_default_dtype(parallel.DTYPES[options.model_dtype])
    with device:
        network = networks.make_network(shape)
    torch.set_default_dtype(torch.float32)
    model = parallel.wrap(network, options, mesh, device)
    batch = networks.make_batch(shape, options.batch, device)
    optimizer = parallel.make_optimizer(model, options)
    for _ in range(options.steps):
        torch.cuda.reset_peak_memory_stats()
        model(*batch).backward()
        optimizer.step()
        peaks = {name: torch.cuda.memory_stats()[name + '_bytes.all.peak'] for name in STATISTICS}
        optimizer.zero_grad()
    return peaks


def shorten(frames, seen):
    """Frames are shared: each is changed once."""
    site = os.path.dirname(os.path.dirname(torch.__file__))
    for frame in frames:
        if id(frame) in seen:
            continue
        seen.add(id(frame))
        for folder, short in ((RECORDER, '/data/recorder'), (HERE, '/data'), (site, '/usr/lib/python3/site-packages'),
                              (os.path.dirname(site), '/usr/lib/python3')):
            if frame['filename'].startswith(folder + os.sep):
                frame['filename'] = sys.intern(short + frame['filename'][len(folder):])
                break


def main():
    warnings.filterwarnings('ignore')
    options = read_options()
    peaks = train(options)
    taken, seen = torch.cuda.memory._snapshot(), set()
    for entry in taken['device_traces'][0]:
        shorten(entry['frames'], seen)
    for segment in taken['segments']:
        for holder in [segment, *segment['blocks']]:
            shorten(holder.get('frames', []), seen)
    with open(options.output, 'wb') as file:
        file.write(gzip.compress(pickle.dumps(taken), 9, mtime=0))
    print(json.dumps(peaks))


if __name__ == '__main__':
    main()

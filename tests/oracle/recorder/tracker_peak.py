"""The peak of forward and backward under fully_shard as PyTorch's own FSDPMemTracker counts it.

The same networks, wrapped alike, on tensors without memory; nothing of the recorder listens: another witness for it (see
verify.py).  Without the optimizer's step, in which the tracker counts the lists of foreach kernels many times over when
tensors have no memory.  Usage: python tracker_peak.py OPTIONS OF record_fsdp.py"""

import functools
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker

import networks
import parallel
import record_fsdp
from building_blocks import loss_of
from options import make_shape


@functools.cache
def pretended_gpu():
    """Its device; and the library of its kernels, which must live as long."""
    return record_fsdp.make_device(record_fsdp.read_options([]))


def loss_after(network, batch, shape):
    results = network(*batch)
    if shape.loss_at == "loop":
        return loss_of(results, batch[1], shape)
    return results if shape.logits_held == "no" else results[1]


def peak_of(words):
    """Bytes, in a step that has the optimizer's state."""
    options = record_fsdp.read_options(words)
    device, _ = pretended_gpu()
    parallel.start_process_group(options)
    try:
        mesh = parallel.make_mesh(options, device.type)
        with FakeTensorMode(allow_non_fake_inputs=True):
            shape = make_shape(options)
            network = record_fsdp.make_network(shape, options, device)
            batch = networks.make_batch(shape, options.batch, device)
            model = parallel.wrap(network, options, mesh, device)
            optimizer = parallel.make_optimizer(model, options)
            tracker = FSDPMemTracker(model, optimizer)
            tracker.track_inputs(batch)
            for step in range(2):
                with tracker:  # which begins a peak of its own
                    loss_after(model, batch, shape).backward()
                    peak = tracker.get_tracker_snapshot("peak")[device]["Total"]
                    if step == 0:
                        optimizer.step()
                        optimizer.zero_grad()
                        tracker.reset_mod_stats()
        return peak
    finally:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    print(peak_of(sys.argv[1:]))

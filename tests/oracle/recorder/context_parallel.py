"""Sequences that ranks share: attention as torch.distributed.tensor.experimental's context_parallel() has it, a ring over
the ranks of a mesh's dimension.  Each rank has its part of every sequence, tokens, targets and tables: it is given no more."""

import dataclasses
import functools

import tensor_parallel


def prepare(recorder, options):
    from torch.distributed.tensor.experimental._context_parallel._attention import set_rotate_method
    set_rotate_method(options.rotate)
    if options.tensor == 1:  # where layers are shared, too, that is done
        tensor_parallel.prepare(recorder)
    recorder.joins_flat_gradients = False
    if options.compile:  # a program waits where it issues, and holds what it reads by itself
        return
    _wait_where_the_ring_does()
    hold_until_waited_for(recorder)


def part_of(shape, options):
    """The shape as one rank sees it."""
    if shape.seq % (2 * options.context):
        raise SystemExit("--context: two parts of a sequence a rank, all as long")
    return dataclasses.replace(shape, seq=shape.seq // options.context)


def _wait_where_the_ring_does():
    """Tensors without memory are taken for a compiler's, which waits where a collective is issued. Without one the ring is
    given a tensor that knows that it has not been waited for, and waits when it takes the next keys and values."""
    from torch.distributed import _functional_collectives as collectives
    from torch.distributed.tensor.experimental._context_parallel import _attention

    def without_waiting(exchange):
        @functools.wraps(exchange)
        def exchange_buffers(rotater, buffer):
            waits = collectives._maybe_wrap_tensor
            collectives._maybe_wrap_tensor = lambda tensor: tensor
            exchange(rotater, buffer)
            collectives._maybe_wrap_tensor = waits
        return exchange_buffers

    for rotater in (_attention._AllGatherRotater, _attention._AllToAllRotater):
        rotater.exchange_buffers = without_waiting(rotater.exchange_buffers)
    _attention._maybe_wait = collectives.wait_tensor


def hold_until_waited_for(recorder):
    """NCCL's process group holds what a collective reads until somebody waits for it (ProcessGroupNCCL.cpp,
    stashed_for_allocator_safety_), which a pretended group does not."""
    held = {}

    def issued(given, made):
        for tensor in made:
            held[tensor.untyped_storage()._cdata] = given

    def waited(tensor):
        held.pop(tensor.untyped_storage()._cdata, None)

    recorder.collective_issued, recorder.collective_waited = issued, waited


def share_sequences(mesh):
    """From now on every attention is a ring's. What stands in for PyTorch's function has its name, by which it is replaced."""
    import torch.nn.functional as F
    from torch.distributed.tensor.experimental._context_parallel import _attention
    F.scaled_dot_product_attention.__name__ = "scaled_dot_product_attention"
    _attention._dispatch_mode = _attention._DispatchMode.MONKEY_PATCH
    _attention._cp_options.enable_load_balance = True
    _attention._enable_context_parallel_dispatcher_impl(seq_dim=2, mesh=mesh)

"""Asynchronous tensor parallel: Inductor's pass (torch._inductor.config._micro_pipeline_tp) puts operators of torch.ops.symm_mem
in place of collectives and the products beside them.

These are Python, registered for CUDA alone (torch/distributed/_symmetric_memory). Here the very same functions are called, with
stand-ins for what they ask of CUDA: a group's symmetric memory, which is not the caching allocator's and so in no recording but
by its size, barriers and copies from another rank, which are noted as collectives are, and streams, which report their use."""

import functools
import types

import torch
import torch._inductor.config as config
import torch.distributed._symmetric_memory as symmetric
from torch.distributed import distributed_c10d as c10d

import fake_gpu
import versions


class Workspace:
    """Of a group, and of all of its ranks: as large as the largest that was asked for yet."""

    def __init__(self, recorder, device, group):
        self.recorder, self.device, self.group, self.bytes = recorder, device, group, 0
        self.rank, self.world_size = group.rank(), group.size()

    def grow(self, size):
        if size > self.bytes:
            self.bytes = size
            self.parts = [self._made(size) for _ in range(2)]  # this rank's, and one that stands for the others'
            self.recorder.log("workspace", bytes=size)

    def _made(self, size):
        self.recorder.paused = True
        made = torch.empty(size, dtype=torch.uint8, device=self.device)
        self.recorder.paused = False
        self.recorder.ignore(made)
        return made

    def get_buffer(self, rank, shape, dtype, storage_offset=0):
        part = self.parts[rank != self.rank]
        return part.view(dtype)[storage_offset:storage_offset + torch.Size(shape).numel()].view(shape)

    def is_anothers(self, tensor):
        return versions.storage_of(tensor)._cdata == versions.storage_of(self.parts[1])._cdata

    def barrier(self, channel=0):
        self.recorder.note_collective("barrier", self.group, [], [], False, False)

    def note_copy(self, to, of):
        if self.is_anothers(of):
            self.recorder.note_collective("take", self.group, [to], [of], False, False)


class Noted(torch.utils._python_dispatch.TorchDispatchMode):
    """Copies from another rank's part are noted."""

    def __init__(self, workspace):
        super().__init__()
        self.workspace = workspace

    def __torch_dispatch__(self, func, types_, args=(), kwargs=None):
        if func is torch.ops.aten.copy_.default:
            self.workspace.note_copy(*args[:2])
        return func(*args, **(kwargs or {}))


class Operators:
    """torch.ops.symm_mem, as a generated program calls it."""

    def __getattr__(self, name):
        body = getattr(symmetric, "_" + name)

        @functools.wraps(body)
        def run(*args, **kwargs):
            return body(*args, **kwargs)
        return types.SimpleNamespace(default=run)


def _as_context(stream):
    """CUDA's streams are contexts, too."""
    scopes = []

    def enter(self):
        scopes.append(fake_gpu.stream_scope(self))
        scopes[-1].__enter__()
        return self
    stream.__enter__ = enter
    stream.__exit__ = lambda self, *_: scopes.pop().__exit__(None, None, None)


def _without_arithmetic(operator):
    """The products that it calls write to what it gives them, and make nothing: here they do nothing, as in all of a program."""
    def nothing(*args, **kwargs):
        return None

    @functools.wraps(operator)
    def run(*args, **kwargs):
        if "mm_out_op" in kwargs:
            return operator(*args, **{**kwargs, "mm_out_op": nothing})
        return operator(nothing, *args[1:], **kwargs)
    return run


def prepare(recorder, device):
    config._micro_pipeline_tp = True
    workspaces = {}

    def workspace(group_name, min_size):
        if group_name not in workspaces:
            workspaces[group_name] = Workspace(recorder, device, c10d._resolve_process_group(group_name))
        workspaces[group_name].grow(min_size)
        return workspaces[group_name]

    def watched(pipelined):
        @functools.wraps(pipelined)
        def run(*args, **kwargs):
            group_name = next(a for a in args if isinstance(a, str))
            with Noted(workspace(group_name, 0)):
                return pipelined(*args, **kwargs)
        return run

    streams = {}
    _as_context(fake_gpu.Stream)
    symmetric.is_symm_mem_enabled_for_group = lambda group_name: True
    symmetric.get_symm_mem_workspace = workspace
    symmetric._get_backend_stream = lambda priority=0: streams.setdefault(priority, fake_gpu.Stream())
    for name in ("_pipelined_multi_all_gather_and_consume", "_pipelined_produce_and_all2all"):
        setattr(symmetric, name, watched(getattr(symmetric, name)))
    for name in ("_fused_all_gather_matmul_impl", "_fused_matmul_reduce_scatter_impl", "_fused_scaled_matmul_reduce_scatter_impl"):
        setattr(symmetric, name, _without_arithmetic(getattr(symmetric, name)))
    torch.cuda.current_stream = lambda device=None: fake_gpu.STREAMS.current
    torch.cuda._sleep = lambda cycles: None

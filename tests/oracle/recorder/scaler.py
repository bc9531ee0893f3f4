"""A scaled loss: PyTorch's GradScaler, or with FSDP1 its ShardedGradScaler, on tensors without memory.

Whether a gradient overflowed is a number that the host reads before it steps; tensors without memory have none, and no
step is skipped here. Where the host reads is noted."""

import torch
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

import fake_gpu


class _WithoutNumbers:
    recorder = None

    def _lazy_init_scale_growth_tracker(self, device):
        super()._lazy_init_scale_growth_tracker(device)
        for number in (self._scale, self._growth_tracker):
            self.recorder.label(number, "optimizer")

    def _maybe_opt_step(self, optimizer, optimizer_state, *arguments, **named):
        self.recorder.log("host_reads", what="found_inf")
        return optimizer.step(*arguments, **named)


class Whole(_WithoutNumbers, getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)):  # there since 2.3
    pass


class Sharded(_WithoutNumbers, ShardedGradScaler):
    pass


def make(options, recorder):
    """None where the loss is not scaled."""
    if not options.grad_scaler:
        return None
    kind = Sharded if options.mode == "fsdp1" else Whole
    kind.recorder = recorder
    if kind is Sharded:
        import torch.distributed.fsdp.sharded_grad_scaler as sharded
        sharded._is_supported_device = lambda tensor: True  # a list of devices by name
    return kind(device=fake_gpu.DEVICE_TYPE)

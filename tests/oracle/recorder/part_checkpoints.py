"""--checkpointing parts: attention, hidden layer and norms of a block are checkpointed apart, by PyTorch's own wrapper, as
NVIDIA's AutoModel does it: after layers are shared, before FSDP; with --parts those of one name alone. What has no
parameters (dropout, an activation) is left as it is."""

from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper


def wrap(network, only):
    for block in [m for m in network.modules() if isinstance(m, network.block_classes)]:
        for name, part in list(block.named_children()):
            if any(True for _ in part.parameters()) and only in (None, name):
                setattr(block, name, checkpoint_wrapper(part))

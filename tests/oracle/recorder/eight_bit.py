"""torchao's AdamW8bit (torchao.optim), whose step of each parameter is compiled by itself: Inductor makes its program for the
pretended device, as it does of blocks (compiled_blocks.py)."""

import torch


def prepare(options, device_type, recorder):
    """Before tensors are pretended."""
    import torchao.optim.adam as adam
    from torchao.optim import subclass_8bit

    import compiled_blocks  # which older versions of torch lack much of
    if not (options.compile or options.compile_network):
        compiled_blocks.prepare(device_type, recorder)
    backend = compiled_blocks.make_backend(options.programs)
    whole_compile = torch.compile

    class Torch:
        """What that module sees as torch."""

        def __getattr__(self, name):
            return getattr(torch, name)

        @staticmethod
        def compile(function, **more):
            return whole_compile(function, backend=backend, **more)

    adam.torch = Torch()
    subclass_8bit.get_qmap_signed(), subclass_8bit.get_qmap_unsigned()  # which remember their numbers


def tensors_of(state):
    """Those of which torchao's tensors of several are made."""
    state = getattr(state, "_local_tensor", state)
    return [getattr(state, name) for name in getattr(state, "tensor_attrs", ())] or [state]

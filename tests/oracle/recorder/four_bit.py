"""QLoRA's base: linear layers of blocks as bitsandbytes' Linear4bit, with adapters as PEFT makes them beside those.

bitsandbytes' own code runs (0.50.2): Linear4bit.forward, MatMul4Bit, quantize_4bit, dequantize_4bit, and what its CUDA
backend does for gemm_4bit where it does not take the kernel that multiplies by 4-bit weights itself (at most 64 rows on an H100, 128
on an A100, of a large layer). Four things are other than in a program:
  * a parameter is a plain one that bears its quant_state, for Params4bit makes no subclass of a tensor without memory;
  * kernels that are called by pointer write nothing;
  * biases have the dtype of products from the start, which Linear4bit gives them in its first forward;
  * the map of 8-bit numbers is made before tensors are pretended.
As Module.to does, the network is moved to the device from the host: module by module, inner ones first."""

import torch
from torch import nn

import parallel

STORAGES = {"uint8": torch.uint8, **parallel.DTYPES}


def prepare(options):
    """Before tensors are pretended."""
    if not options.lora_base:
        return
    import bitsandbytes as bnb
    from bitsandbytes.backends.cuda import ops as cuda
    dynamic = bnb.functional.create_dynamic_map()
    bnb.functional.create_dynamic_map = lambda: dynamic
    cuda._dequantize_4bit_impl = cuda._dequantize_blockwise_impl = lambda *arguments, **named: None
    ops = torch.ops.bitsandbytes
    ops.gemm_4bit.default = cuda._dequant_linear_fallback
    ops.dequantize_4bit.default = lambda packed, absmax, blocksize, quant_type, shape, dtype: torch.empty(
        shape, dtype=dtype, device=packed.device)
    ops.dequantize_blockwise.default = lambda numbers, absmax, code, blocksize, dtype: torch.empty_like(numbers, dtype=dtype)
    bnb.nn.modules.fix_4bit_weight_quant_state_from_module = give_back_state


def give_back_state(layer):
    """Whatever FSDP has put in place of the parameter has none."""
    layer.weight.quant_state = layer.quant_state


def compute_dtype(options):
    return parallel.DTYPES[options.autocast or options.model_dtype]


def quantize(layer, options, device):
    """nn.Linear on the host becomes Linear4bit on the device."""
    import bitsandbytes as bnb
    on_device = layer.weight.data.to(compute_dtype(options)).to(device)
    numbers, state = bnb.functional.quantize_4bit(
        on_device, blocksize=64, compress_statistics=options.lora_base_double, quant_type=options.lora_base,
        quant_storage=STORAGES[options.lora_base_storage])
    del on_device
    if layer.bias is not None:
        layer.bias = nn.Parameter(layer.bias.data.to(compute_dtype(options)))
    layer.__class__ = bnb.nn.Linear4bit
    layer.weight = nn.Parameter(numbers, requires_grad=False)
    layer.weight.quant_state = layer.quant_state = state
    layer.quant_storage = numbers.dtype
    layer.compute_dtype, layer.compute_type_is_set = compute_dtype(options), True
    layer.support_avx512bf16_for_cpu = False


def to_device(module, inside, options, device, moved):
    """moved, by what a tensor is: it, which lives on lest another gets its number, and what it became."""
    for child in module.children():
        to_device(child, inside, options, device, moved)
    if isinstance(module, nn.Linear) and id(module) in inside:
        quantize(module, options, device)
    for tensors in (module._parameters, module._buffers):
        for name, tensor in tensors.items():
            if tensor is None or tensor.device.type == device.type:
                continue
            if id(tensor) not in moved:
                there = tensor.data.to(device)
                is_parameter = isinstance(tensor, nn.Parameter)
                moved[id(tensor)] = tensor, nn.Parameter(there, tensor.requires_grad) if is_parameter else there
            tensors[name] = moved[id(tensor)][1]


def put_on_device(network, options, device):
    blocks = [m for m in network.modules() if isinstance(m, network.block_classes)]
    inside = {id(m) for block in blocks for m in block.modules()}
    own = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # of the maps
    to_device(network, inside, options, device, {})
    torch.set_default_dtype(own)


def numbers_of(parameter):
    state = getattr(parameter, "quant_state", None)
    return state.shape.numel() if state else parameter.numel()


def label_states(recorder, network, options):
    if not options.lora_base:
        return
    import bitsandbytes as bnb
    recorder.label(bnb.functional.name2qmap.get("dynamic"), "param_unsharded")
    for module in network.modules():
        state = getattr(module, "quant_state", None)
        nested = getattr(state, "state2", None)
        for tensor in (state and state.absmax, state and state.code, nested and state.offset,
                       nested and nested.absmax, nested and nested.code):
            if tensor is not None:
                recorder.label(tensor, "param_unsharded")

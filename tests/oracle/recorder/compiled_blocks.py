"""torch.compile without a GPU: Inductor makes its program for the pretended device, and that program runs, on tensors
without memory, with kernels that do nothing. So what it allocates, keeps for backward and frees is PyTorch's own.

Inductor is told that the device "fakegpu" is one for which it writes Triton (as other vendors' devices are), of the
properties of an H100. The text it generates is run with stand-ins for the Triton kernels and for products; attention
and everything else that Inductor does not generate runs as PyTorch's own ops do.

Two things are PyTorch's on a GPU and not here: folding of constants in the joint graph, which would compute on the
device, and the state of the random numbers that a checkpointed attention kernel keeps on the host."""

import functools
import contextlib
import os
import re
import types

import torch
import torch._dynamo.device_interface as interfaces
import torch._functorch.partitioners as partitioners
import torch._inductor.codegen.triton as triton_text
import torch._inductor.compile_fx as inductor
import torch._inductor.config as config
import torch._inductor.scheduler as scheduler
import torch._inductor.utils
import torch.utils._triton
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.codegen.common import (DeviceOpOverrides, init_backend_registration, register_backend_for_device,
                                            register_device_op_overrides)
from torch._inductor.codegen.wrapper import PythonWrapperCodegen
from torch._inductor.debug import DebugContext
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.graph import GraphLowering
from torch._inductor.ir import IRNode
from torch._guards import TracingContext
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import unset_fake_temporarily

import async_tensor

PROPERTIES = types.SimpleNamespace(  # NVIDIA H100 SXM
    name="pretended H100", major=9, minor=0, total_memory=80 * 2**30, multi_processor_count=132, warp_size=32,
    regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, max_threads_per_block=1024, gcnArchName="",
    shared_memory_per_block=227 * 1024, shared_memory_per_multiprocessor=228 * 1024, L2_cache_size=50 * 2**20)


class Interface(interfaces.DeviceInterface):
    """What torch.compile asks a device."""

    class Worker:
        get_device_properties = staticmethod(lambda device=None: PROPERTIES)
        current_device = staticmethod(lambda: 0)
        set_device = staticmethod(lambda device: None)

    current_device = staticmethod(lambda: 0)
    set_device = staticmethod(lambda device: None)
    device_count = staticmethod(lambda: 1)
    is_available = staticmethod(lambda: True)
    get_compute_capability = staticmethod(lambda device=None: 90)
    get_device_properties = staticmethod(lambda device=None: PROPERTIES)
    is_triton_capable = staticmethod(lambda device=None: True)
    raise_if_triton_unavailable = staticmethod(lambda device=None: None)
    is_bf16_supported = staticmethod(lambda including_emulation=False: True)
    synchronize = staticmethod(lambda device=None: None)
    get_raw_stream = staticmethod(lambda device: 0)


class Overrides(DeviceOpOverrides):
    """What the generated text says of the device."""

    def import_get_raw_stream_as(self, name):
        return f"{name} = lambda device: 0"

    def set_device(self, device_idx):
        return "pass"

    def synchronize(self):
        return "pass"

    def device_guard(self, device_idx):
        return "nothing()"


def teach_inductor(device_type):
    # DDP's compiler would cut a program where a bucket is full, and look at modules as tensors without memory forbid.
    torch._dynamo.config.optimize_ddp = False
    config.joint_graph_constant_folding = False
    config.fx_graph_cache = False
    config.compile_threads = 1
    torch._inductor.utils.GPU_TYPES.append(device_type)
    interfaces.register_interface_for_device(device_type, Interface)
    init_backend_registration()
    register_backend_for_device(device_type, triton_text.TritonScheduling, PythonWrapperCodegen)
    register_device_op_overrides(device_type, Overrides())
    scheduler.has_triton = lambda *_, **__: True
    torch.accelerator.is_available = lambda: False  # whose streams the compiler would trace; these only report
    torch.utils._triton.triton_hash_with_backend = lambda: "none"  # names a driver, which there is none of
    partitioners.functionalize_rng_ops = lambda joint, forward, backward, *_, **__: (forward, backward)


class Nothing:
    """A kernel, or a library of them, whose calls do nothing; but this one allocates what it gives."""

    _grouped_mm = staticmethod(torch._grouped_mm)

    def __call__(self, *_, **__):
        return None

    def __getattr__(self, name):
        return self


def run_text(text):
    """The function `call` of a generated module, its kernels standing still."""
    text = text[text.index("class Runner"):text.index("runner = Runner(")].replace("torch.ops.symm_mem.", "symm_mem.")
    space = {name: Nothing() for name in re.findall(r"(\w+)\.run\(", text)}
    space.update(torch=torch, device=torch.device, aten=torch.ops.aten, symm_mem=async_tensor.Operators(), extern_kernels=Nothing(), assert_size_stride=Nothing(),
                 assert_size_stride_grouped=Nothing(), assert_tensor_metadata=Nothing(), assert_alignment=Nothing(), empty_strided=torch.empty_strided, nothing=contextlib.nullcontext, get_raw_stream=lambda device: 0,
                 reinterpret_tensor=lambda x, size, stride, offset=0: x.as_strided(
                     size, stride, x.storage_offset() + offset))
    exec(text, space)
    return space["Runner"](partitions=[]).call


def values_of(graph_module):
    return [n.meta["val"] for n in graph_module.graph.nodes if n.op == "placeholder"]


def keep_text(text, folder, direction):
    """For whoever wants to read what Inductor wrote: FOLDER/0-forward.py, 1-backward.py and so on."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "%d-%s.py" % (len(os.listdir(folder)), direction)), "w") as file:
        file.write(text)


def report_strides(graph):
    """Inductor pads rows of large tensors, and backward is compiled for what forward leaves."""
    context = TracingContext.try_get()
    if context is not None and context.output_strides is not None:
        context.output_strides.extend(
            tuple(int(s) for s in out.get_layout().stride) if isinstance(out, IRNode) and out.has_tensor_output()
            else None for out in graph.graph_outputs)


def name_what_leaves(graph_module, direction):
    """What leaves a program lies as without a compiler (torch/_inductor/config.py: keep_output_stride, bw_outputs_user_visible);
    rows of what forward keeps for backward may be padded."""
    output = next(iter(graph_module.graph.find_nodes(op="output")))
    made = output.args[0]
    first, end = 0, len(made)
    if direction == "forward":
        context = TracingContext.try_get()
        first = context.fw_metadata.num_mutated_inp_runtime_indices
        end = first + context.fw_metadata.num_outputs
    output.meta["user_visible_output_idxs"] = [i for i in range(first, end) if isinstance(made[i], torch.fx.Node)]
    inductor.record_original_output_strides(graph_module)


def lower(direction, programs):
    """direction: forward or backward, of one program in two; or alone, a forward that nobody wants a gradient of."""
    def compile_graph(graph_module, given):
        is_backward, is_alone = direction == "backward", direction == "alone"
        inputs = list(given) if is_backward else values_of(graph_module)
        mode = next(x for x in inputs if isinstance(x, torch.Tensor)).fake_mode
        with unset_fake_temporarily(), V.set_fake_mode(mode), DebugContext():
            if is_alone:  # what partition() does of the two
                inductor._recursive_joint_graph_passes(graph_module)
            if config._micro_pipeline_tp:  # its patterns are of reshapes, which a whole compilation makes of views
                inductor.view_to_reshape(graph_module)
            name_what_leaves(graph_module, direction)
            inductor._recursive_post_grad_passes(graph_module, is_inference=is_alone)
            graph = GraphLowering(graph_module, example_inputs=inputs, shape_env=mode.shape_env, is_backward=is_backward,
                                  is_inference=is_alone)
            with V.set_graph_handler(graph):
                graph.run(*inputs)
                report_strides(graph)
                text = graph.codegen()[0].value
                if programs:
                    keep_text(text, programs, direction)
                call = run_text(text)

        def run(arguments):
            return call(arguments)
        run._boxed_call = True  # it clears the list, so that what it frees is freed
        return run
    return compile_graph


def partition(graph_module, inputs, **more):
    inductor._recursive_joint_graph_passes(graph_module)
    return partitioners.min_cut_rematerialization_partition(graph_module, inputs, compiler="inductor", **more)


def prepare(device_type, recorder):
    teach_inductor(device_type)
    recorder.ignores = lambda: TracingContext.try_get() is not None  # tensors of the compiler's own


def make_backend(programs):
    return aot_autograd(fw_compiler=lower("forward", programs), bw_compiler=lower("backward", programs),
                        inference_compiler=lower("alone", programs), partition_fn=partition,
                        decompositions=select_decomp_table(), keep_inference_input_mutations=True)


def compile_blocks(network, programs, whole):
    """Each by itself, as most training programs do; whatever is around them stays as it is. Or all of the network, which
    no hook cuts."""
    backend = make_backend(programs)
    if whole:
        network.compile(backend=backend, fullgraph=True)
        return
    for module in network.modules():
        if isinstance(module, network.block_classes):
            if hasattr(module.mlp, "experts"):
                compile_around_experts(module, backend)
            else:
                module.compile(backend=backend, fullgraph=True)


def compile_around_experts(block, backend):
    """What torchtitan compiles of a block whose experts FSDP2 wraps by themselves (torchtitan/models/llama4/parallelize.py at
    01db32e9, 2026: apply_compile): each module by itself, and the experts' three products; sums, and rows on their way to experts and
    back, stay as they are. Routing is balanced, so that nothing is compiled for any number of rows."""
    for parent, names in ((block, ("norm_1", "attn", "norm_2")), (block.mlp, ("router", "shared"))):
        for name in names:
            if getattr(parent, name) is not None:
                setattr(parent, name, torch.compile(getattr(parent, name), backend=backend, fullgraph=True))
    block.mlp.sorted_by_expert = torch.compile(block.mlp.sorted_by_expert, backend=backend, fullgraph=True)
    block.mlp.experts.run = torch.compile(block.mlp.experts.run, backend=backend, fullgraph=True)


@functools.cache
def compile_loss(loss_of):
    """By itself, as torchtitan has had it since 2025 (torchtitan/components/loss.py)."""
    return torch.compile(loss_of, backend=make_backend(None), fullgraph=True)

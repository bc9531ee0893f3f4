"""Writes the network file of any PyTorch module, for `foreshard`: no GPU, and no memory, is needed.

    python3 trace.py my_model.py -o my.network

my_model.py defines model(), which makes the network; batch(n), which makes the tensors of n samples; and, unless the
network returns it, loss(model, *batch). It may define BLOCKS, names of classes that are units of their own, and TOKENS,
how many tokens a sample has. PyTorch 2.13 is what was recorded and compared; others from 2.9 on may work."""

import argparse
import logging
import runpy
import sys
import traceback
import warnings
from pathlib import Path

try:
    import torch
except ModuleNotFoundError:
    sys.exit("trace: this Python has no PyTorch; run it with one that has 2.13 (pip install torch; no GPU is needed)")
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode

import copies
import network_text
import pretended_gpu
import values
from watch import Unsupported, Watch

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
SAMPLES = (1, 2, 3, 5)  # one by itself, as it may be another program; two to find what grows, and one to be sure


def default_loss(model, *batch):
    made = model(*batch)
    return getattr(made, "loss", made)


def block_classes(model, named):
    """Those named; else what stands in lists of modules."""
    if named:
        return [m for m in model.modules() if type(m).__name__ in named]
    return [child for m in model.modules() if isinstance(m, nn.ModuleList) for child in m if any(True for _ in child.parameters())]


def _is_cast(tensor, dtype):
    return isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dtype != dtype


def _cast(tree, dtype):
    return torch.utils._pytree.tree_map(lambda t: t.to(dtype) if _is_cast(t, dtype) else t, tree)


def watch_modules(model, watch, dtype, blocks):
    """What they call and are called with; the root, and blocks, are given what they are called with in the dtype."""
    names = {id(m): i for i, m in enumerate(model.modules())}

    def tensors(tree):
        return [watch.key_of(t) for t in torch.utils._pytree.tree_leaves(tree)
                if isinstance(t, torch.Tensor) and watch.is_on_device(t)]

    def enters(module, args, kwargs):
        if watch.phase == "backward":
            raise Unsupported("the network computes parts of itself again in backward; trace it without checkpointing of its "
                              "own (gradient_checkpointing_disable() in transformers), and give foreshard --checkpointing")
        if watch.phase == "forward":
            watch.settle()
            watch.stream.append(("enter", names[id(module)], tensors((args, kwargs))))

    def leaves(module, args, kwargs, made):
        if watch.phase == "forward":
            watch.settle()
            watch.stream.append(("return", names[id(module)]))
            watch.stream.append(("leave", names[id(module)], tensors(made)))

    def casts(module, args, kwargs):
        if watch.phase == "forward" and module is model:
            watch.settle()
            watch.stream.append(("casts",))
        elif any(_is_cast(t, dtype) for t in torch.utils._pytree.tree_leaves((args, kwargs))):
            watch.casts_blocks = True
        return _cast(args, dtype), _cast(kwargs, dtype)

    for module in [model, *blocks] if dtype else ():
        module.register_forward_pre_hook(casts, with_kwargs=True)
    for module in model.modules():
        module.register_forward_pre_hook(enters, with_kwargs=True)
        module.register_forward_hook(leaves, with_kwargs=True)


def run_pass(model, make_batch, loss_of, samples, watch, device):
    """One pass, watched; returns the loss's key and the inputs' stores."""
    for parameter in model.parameters():
        parameter.grad = None
    watch.phase = "setup"
    with device:
        batch = make_batch(samples)
    batch = batch if isinstance(batch, (tuple, list)) else (batch,)
    inputs = []
    for tensor in torch.utils._pytree.tree_leaves(batch):
        store = watch.store_of(tensor) if isinstance(tensor, torch.Tensor) and watch.is_on_device(tensor) else None
        if store is not None and store not in inputs:  # tokens may be labels, too
            inputs.append(store)
            store.words = network_text.sized(store.nbytes, tensor.dtype)
    inputs.sort(key=lambda store: store.number)
    if not inputs:
        raise Unsupported("batch(n) makes no tensor on the device that is the default; let it not name another")
    watch.standing()
    watch.begin_pass()
    watch.phase = "forward"
    with torch.autograd.graph.saved_tensors_hooks(watch.pack, watch.unpack), device:
        loss = loss_of(model, *batch)
    watch.settle()
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or loss.grad_fn is None:
        raise Unsupported("loss(model, *batch) must return one number that hangs on parameters")
    key = watch.key_of(loss)
    watch.phase = "after forward"
    watch.follow(loss)
    watch.phase = "backward"
    loss.backward()
    watch.node = None
    watch.phase = "setup"
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and parameter.grad is None:
            raise Unsupported(f"parameter {name} gets no gradient; take it out, or freeze it: requires_grad_(False)")
    return key, inputs


def in_order(network, born):
    """Parameters as they are registered, each buffer behind as many of them as were made before it."""
    parameters = list(network.parameters())
    order = list(parameters)
    for buffer in sorted(network.buffers(), key=born, reverse=True):
        order.insert(sum(born(p) < born(buffer) for p in parameters), buffer)
    return order


def _suppose_whole_sequences():
    """transformers looks through the positions for several sequences in one, and where it cannot read them makes a mask of
    what may be there. Of whole sequences it makes none, and attention takes another kernel."""
    masks = sys.modules.get("transformers.masking_utils")
    if masks is not None:
        masks.find_packed_sequence_indices = lambda position_ids: None


def make_model(model, dtype, device, watch):
    """The network, its parameters and buffers in order, and the order in which the former were made."""
    with device:
        network = model()
    _suppose_whole_sequences()
    if not isinstance(network, nn.Module):
        raise Unsupported("model() must return a torch.nn.Module")
    if any(p.device.type != device.type for p in network.parameters()):
        raise Unsupported("model() makes parameters on a device of its own choice; let it not name one")
    copies.renew(network, watch.takes_place)
    born = {id(t): watch.store_of(t).number for t in (*network.parameters(), *network.buffers())}
    declared = in_order(network, lambda tensor: born[id(tensor)])
    made = sorted(range(sum(1 for _ in network.parameters())), key=[born[id(p)] for p in network.parameters()].__getitem__)
    for parameter in network.parameters() if dtype else ():
        if parameter.is_floating_point():
            parameter.data = parameter.data.to(dtype)
    return network, declared, made


def say_how_far(text):
    """On a terminal: passes of a network of hundreds of ops a block take a minute each."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def write(path, model, batch, loss=default_loss, dtype=None, blocks=(), tokens=None, samples=SAMPLES, title="", cast="blocks"):
    """model(): the network; batch(n): its tensors; loss(model, *batch): one number. dtype: what FSDP's mixed precision
    (param_dtype) casts parameters and inputs to; None: all is as it is made. cast: whose inputs, those of blocks, too, or
    the root's alone."""
    device, keep_alive = pretended_gpu.create()
    watch = Watch(device.type)
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    fake.cache_enabled = False  # it forgets what a storage holds beyond a view
    with fake, watch:
        torch.manual_seed(0)
        network, declared, made = make_model(model, DTYPES[dtype] if dtype else None, device, watch)
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.register_post_accumulate_grad_hook(watch.has_gradient)
        units = block_classes(network, blocks)
        watch_modules(network, watch, DTYPES[dtype] if dtype else None, units if cast == "blocks" else ())
        say_how_far(f"tracing a pass ahead of {len(samples)}")
        run_pass(network, batch, loss, samples[-1], watch, device)  # what is made once is there then
        watch.came_to()
        passes = {}
        for n in samples:
            say_how_far(f"tracing pass {len(passes) + 1} of {len(samples)}")
            key, inputs = run_pass(network, batch, loss, n, watch, device)
            if not watch.came_to():  # of so many samples it is another program
                del key, inputs
                key, inputs = run_pass(network, batch, loss, n, watch, device)
            passes[n] = network_text.lines_of_pass(watch, declared, key, inputs)
            del key, inputs
        say_how_far("")
        text = network_text.text_of(network, declared, made, passes, units, tokens, title, watch.casts_blocks)
    values.write_whole(path, [text.encode()])
    del keep_alive


def refuse(why):
    say_how_far("")
    print(f"trace: {why}", file=sys.stderr)
    sys.exit(2)


def own_frames(why, program):
    """Of the calls that an exception came through, the program's and those of modules of its own: from its first on, but
    neither PyTorch's nor the tracer's."""
    others = Path(torch.__file__).parent, *(Path(module.__file__) for module in (copies, network_text, pretended_gpu, values)), \
        Path(sys.modules[Watch.__module__].__file__), Path(__file__)
    named = Path(program).resolve()
    frames = [(frame, Path(frame.filename).resolve()) for frame in traceback.extract_tb(why.__traceback__)]
    first = next((i for i, (_, path) in enumerate(frames) if path == named), len(frames))
    return [frame for frame, path in frames[first:] if path.is_file() and not any(path.is_relative_to(o.resolve()) for o in others)]


def place_in(frames):
    return f"{frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line}: " if frames else ""


def refuse_program(why, program):
    """What the program's own code raised. A device that it names is not the one that is watched."""
    said = " ".join(traceback.format_exception_only(why)[-1].split())
    frames = own_frames(why, program)
    if isinstance(why, SyntaxError) and why.filename:
        refuse(f"{why.filename}:{why.lineno}: {(why.text or '').strip()}: {said}")
    if isinstance(why, OSError) and why.filename and not frames:
        refuse(f"{why.filename} cannot be written: {why.strerror}")
    if not frames:
        raise why  # the tracer's own
    last = frames[-1]
    place = place_in(frames)
    if isinstance(why, (RuntimeError, AssertionError)) and any(word in last.line for word in ("cuda", ".to(", "device")):
        refuse(f"{place}name no device (.cuda(), .to(...), device=...); the default one is watched, and has no memory "
               f"({type(why).__name__})")
    calls = [f"  {frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}" for frame in frames[:-1]]
    refuse("\n".join([f"{place}{said}", *(["called from"] if calls else []), *calls]))


def say_what_is_next(path, dtype):
    """A name without a slash is looked for among foreshard's own networks first."""
    name = path if "/" in str(path) else f"./{path}"
    precision = f" --param-dtype {dtype}" if dtype else ""
    print(f"wrote {path}; next: foreshard predict {name} -n 8 --cluster a100-node{precision}")


def write_values(user, options):
    """Made for real, which takes the memory of the network."""
    torch.manual_seed(0)
    if options.weights:
        values.write(options.weights, values.of_network(user["model"]()))
    if options.data:
        values.write(options.data, values.of_batch(user["batch"], options.samples)[1])


def trace(options):
    sys.path.insert(0, str(Path(options.program).resolve().parent))
    user = runpy.run_path(options.program)
    for name in ("model", "batch"):
        if not callable(user.get(name)):
            raise Unsupported(f"{options.program} defines no {name}()")
    blocks = options.blocks.split(",") if options.blocks else user.get("BLOCKS", ())
    write_values(user, options)
    write(options.output, user["model"], user["batch"], user.get("loss", default_loss), options.dtype, blocks,
          options.tokens or user.get("TOKENS"), title=Path(options.program).name, cast=options.cast)


def main():
    warnings.filterwarnings("ignore")
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # what it reports is raised, too
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("program", help="Python file with model(), batch(n) and loss(model, *batch)")
    p.add_argument("-o", "--output", required=True, help="network file to write")
    p.add_argument("--dtype", choices=DTYPES, help="what --param-dtype will be: parameters and inputs are cast to it")
    p.add_argument("--cast", choices=("blocks", "root"), default="blocks",
                   help="whose inputs are cast: those of blocks, too, as by FSDP2 where each is a unit; or the root's alone, as "
                        "by FSDP1 and where all is one unit (default blocks)")
    p.add_argument("--blocks", help="classes that are units, with commas between (default: BLOCKS, or what stands in a ModuleList)")
    p.add_argument("--weights", help="safetensors file to write: the network's own first values, for `foreshard run --load`")
    p.add_argument("--data", help="safetensors file to write: samples of batch(n), for `foreshard run --data`")
    p.add_argument("--samples", type=int, default=64, help="in --data (default 64)")
    p.add_argument("--tokens", type=int, help="of a sample (default: TOKENS, or 1)")
    options = p.parse_args()
    if not Path(options.program).is_file():
        refuse(f"there is no file {options.program}")
    for path in (options.output, options.weights, options.data):
        if path and not Path(path).resolve().parent.is_dir():
            refuse(f"{path} cannot be written: there is no such folder")
        if path and Path(path).is_dir():
            refuse(f"{path} cannot be written: it is a folder; name a file in it")
    if options.samples < 1:
        refuse("--samples is a number from 1 on")
    try:
        trace(options)
    except Unsupported as why:
        refuse(why)
    except (DataDependentOutputException, DynamicOutputShapeException) as why:
        refuse(f"{place_in(own_frames(why, options.program))}the network asks for a number that only a device could tell "
               f"({why.func}); take out what reads tensors' contents (.item(), if x.sum() > 0, x[mask])")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as why:
        refuse_program(why, options.program)
    say_what_is_next(options.output, options.dtype)


if __name__ == "__main__":
    main()

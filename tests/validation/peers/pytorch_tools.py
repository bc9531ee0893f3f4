"""What PyTorch's own predictors say of the published runs: FSDPMemTracker the peak of memory, RuntimeEstimator the time of
a step's kernels. Both without a GPU, on the recorder's networks. Writes one line of JSON a run.

    python pytorch_tools.py memory|time [FIRST [COUNT]] >> results.jsonl      # PyTorch 2.13, as the recorder wants it
"""

import contextlib
import functools
import io
import json
import pathlib
import sys
import warnings

import published

ROOT = published.TABLES.parent.parent
sys.path.insert(0, str(ROOT / "tests/oracle/recorder"))

import torch  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.distributed._tools import runtime_estimator  # noqa: E402
from torch.utils import _runtime_estimation  # noqa: E402

import networks  # noqa: E402
import record_fsdp  # noqa: E402
from options import make_shape  # noqa: E402
from tracker_peak import loss_after, peak_of, pretended_gpu  # noqa: E402

TOOLS = {"memory": "FSDPMemTracker", "time": "RuntimeEstimator"}
KINDS = {"gpt": "gpt-toy", "llama": "llama-toy", "mpt": "mpt-toy"}


def recorder_words(run, layers=None):
    """The recorder's command line of a run; None: it has no such network, or the tool knows nothing of the strategy."""
    settings, shape = run["settings"], run["shape"]
    kind = settings.get("network.family", "")
    if kind not in KINDS or not {"layers", "width", "heads", "vocab", "seq", "batch"} <= set(shape):
        return None
    words = ["--preset", KINDS[kind], "--batch", str(shape["batch"])]
    for name in ("layers", "width", "heads", "vocab", "seq"):
        words += ["--" + name, str(layers if name == "layers" and layers else shape[name])]
    if kind == "llama":
        words += ["--kv-heads", str(shape.get("kv_heads", shape["heads"])), "--ffn", str(shape["ffn"])]
        words += ["--rms-norm", settings.get("rms_norm", "kernel")]
        words += ["--head-dim", str(int(settings.get("network.head_dim", shape["width"] // shape["heads"])))]
    if settings.get("network.loss") in ("fp32", "fp32-logits"):
        words += ["--loss", settings["network.loss"]]
    if settings.get("network.loss_at", "model") != "model":
        words += ["--loss-at", settings["network.loss_at"]]
    if settings.get("network.logits_held", "no") != "no":
        words += ["--logits-held", settings["network.logits_held"]]
    if settings.get("checkpointing", "none") != "none":
        words += ["--checkpointing", "inside"]
        if settings["checkpointing"] == "selective-op":
            words.append("--selective")
    return words


def memory_words(run):
    settings = run["settings"]
    beyond = {"tensor", "context", "pipeline", "float8", "lora_rank", "freeze", "autocast", "offload"} & set(settings)
    words = recorder_words(run)
    odd = settings.get("checkpointing", "none") not in ("none", "full", "selective-op")
    if settings.get("flavour") != "fsdp2" or beyond or odd or words is None or settings.get("sharding", "full") != "full":
        return None
    model = settings.get("model_dtype", "fp32")
    param = {"model": model}.get(settings.get("param_dtype", "model"), settings.get("param_dtype"))
    reduce = {"param": param}.get(settings.get("reduce_dtype", "param"), settings.get("reduce_dtype"))
    words += ["--mode", "fsdp2", "--world", settings["ranks"]]
    words += ["--model-dtype", model, "--param-dtype", param, "--reduce-dtype", reduce]
    words += ["--optimizer-kernel", settings.get("optimizer_kernel", "default")]
    if settings.get("reshard_last") == "no":
        words.append("--no-reshard-last")
    return words


def of_the_first_dtype(compute_time):
    """RuntimeEstimator stops at kernels whose results have several dtypes, as flash attention's (16 bits, and fp32 for
    the logarithms of its sums): it is told the lowest, which is that of the product."""
    @functools.wraps(compute_time)
    def told(packet, args, kwargs, out, out_dtypes, **more):
        return compute_time(packet, args, kwargs, out, set(sorted(out_dtypes, key=lambda t: t.itemsize)[:1]), **more)
    return told


@functools.cache
def pass_ms(words, kind, tflops, gb_per_s):
    """Milliseconds of the kernels of one forward and backward of a network in one dtype."""
    options = record_fsdp.read_options([*words, "--mode", "none", "--model-dtype", kind])
    device = pretended_gpu()[0]
    _runtime_estimation.get_device_tflops = lambda dtype: tflops
    _runtime_estimation.get_gpu_dram_gbps = lambda: gb_per_s
    estimator = runtime_estimator.RuntimeEstimator()
    with FakeTensorMode(allow_non_fake_inputs=True):
        shape = make_shape(options)
        network = record_fsdp.make_network(shape, options, device)
        batch = networks.make_batch(shape, options.batch, device)
        with contextlib.redirect_stdout(io.StringIO()), estimator("operator-level-cost-model"):
            loss_after(network, batch, shape).backward()
    return estimator.total_runtime


def step_ms(run):
    """Of 1 and 2 layers, from which the whole follows: its sum over kernels is linear in layers."""
    kind, device = published.product_dtype(run["settings"]), published.device_of(run)
    speeds = float(device[f"matmul_{kind}_tflops"]), float(device["memory_gb_per_s"])
    one, two = (pass_ms(tuple(recorder_words(run, layers)), kind, *speeds) for layers in (1, 2))
    return (one + (run["shape"]["layers"] - 1) * (two - one)) * int(run["settings"].get("accumulate", 1))


def line_of(run, what):
    line = {"tool": TOOLS[what], "file": run["file"], "line": run["line"]}
    if what == "memory":
        words = memory_words(run)
        if not run["row"].get("peak_mem_gib") or words is None:
            return None
        line |= {"measured_gib": float(run["row"]["peak_mem_gib"]), "kind": run["row"]["peak_mem_kind"]}
        line["gib"] = peak_of(words) / published.GIB
    else:
        if recorder_words(run) is None:
            return None
        line["ms"] = step_ms(run)
    return line


def main():
    warnings.filterwarnings("ignore")
    what, first, count = sys.argv[1], int((sys.argv[2:] or [0])[0]), int((sys.argv[3:] or [10**6])[0])
    runtime_estimator.get_compute_time = of_the_first_dtype(runtime_estimator.get_compute_time)
    torch.cuda.is_available = lambda: what == "time"  # RuntimeEstimator asks; what it then reads of a GPU is given above
    for run in list(published.runs())[first:first + count]:
        try:
            line = line_of(run, what)
        except Exception as error:  # what the tool cannot do is a result too
            line = {"tool": TOOLS[what], "file": run["file"], "line": run["line"], "fails": f"{type(error).__name__}: {error}"[:200]}
        if line:
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

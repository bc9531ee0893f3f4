"""Train networks with PyTorch and with foreshard from the same weights on the same tokens, and compare.

    python compare.py --foreshard build/cli/foreshard models/networks/{gpt,llama,t5}-toy.ini
    python compare.py --foreshard build/cli/foreshard --keep tests/oracle/numbers/golden/*/network.ini
    python compare.py --foreshard build/cli/foreshard --mxfp8 NETWORK.ini
    python compare.py --foreshard build/cli/foreshard --float8 --keep tests/oracle/numbers/golden/float8/network.ini

Per network: losses of 20 steps of AdamW on a global batch of 12 and all gradients of the first step, PyTorch
on one process and with FSDP2 over gloo on two, foreshard on one rank and with several strategies; then in
bf16. With --float8 instead FSDP2 in bf16 and with layers in float8, by torchao 0.18, and what float8's rounding
adds to a gradient: how alike it is on both sides (1: the same, 0: it has nothing in common). With --keep PyTorch's side is left beside the network's file, for tests/oracle/numbers/check.c."""

import argparse
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(1, HERE)
import weight_files  # noqa: E402

STEPS, BATCH, LR = 20, 12, 512
MUON_LR = 0.02
STRATEGIES = ("-n 1 --sharding none", "-n 2", "-n 3 --sharding none", "-n 3 --flavour fsdp1",
              "-n 4 --sharding hybrid --replicate 2")


def read_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foreshard", required=True)
    p.add_argument("--data", default=os.path.join(HERE, "golden", "tokens.bin"))
    p.add_argument("--float8", action="store_true")
    p.add_argument("--mxfp8", action="store_true")
    p.add_argument("--keep", action="store_true")
    p.add_argument("networks", nargs="+")
    return p.parse_args()


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def torch_losses(ranks, network, folder, data, *more):
    """Ranks are started here, not by torchrun, which hangs where a machine does not know its own name."""
    words = [sys.executable, os.path.join(HERE, "train.py"), network, "--weights", folder + "/weights.safetensors",
             "--data", data, "--steps", str(STEPS), "--batch", str(BATCH), *more]
    group = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
             "GLOO_SOCKET_IFNAME": "lo"}
    runs = [subprocess.Popen(words, env={**os.environ, **group, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for rank in range(ranks)]
    said = [run.communicate() for run in runs]
    if any(run.returncode for run in runs):
        raise SystemExit("".join(errors for _, errors in said))
    return json.loads(said[0][0])


def share_of(strategy):
    """Samples of one rank and pass."""
    words = strategy.split()
    passes = int(words[words.index("--accumulate") + 1]) if "--accumulate" in words else 1
    return BATCH // int(words[1]) // passes


def run_foreshard(options, network, folder, strategy, *more):
    words = [options.foreshard, "run", network, *strategy.split(), "--micro-batch", str(share_of(strategy)),
             "--load", folder + "/weights.safetensors", "--data", options.data, "--json", *more]
    return json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)["losses"]


def foreshard_gradients(options, network, folder, strategy):
    """A step of SGD moves weights by the gradients."""
    after = folder + "/after.safetensors"
    run_foreshard(options, network, folder, strategy, "--steps", "1", "--optimizer", "sgd", "--lr", str(LR),
                  "--save", after)
    before, after = weight_files.read(folder + "/weights.safetensors"), weight_files.read(after)
    return {name: (before[name] - after[name]) / LR for name in before}


def worst_loss(a, b):
    return max(abs(x / y - 1) for x, y in zip(a, b, strict=True))


def worst_gradient(a, b):
    return max(float((a[name] - b[name]).norm() / b[name].norm()) for name in b)


def compare(options, network, folder):
    torch = {"one": torch_losses(1, network, folder, options.data, "--seed", "1",
                                 "--gradients", folder + "/gradients.safetensors")}
    torch["fsdp2"] = torch_losses(2, network, folder, options.data, "--gradients", folder + "/fsdp2.safetensors")
    torch["bf16"] = torch_losses(2, network, folder, options.data, "--bf16")
    torch["muon"] = torch_losses(1, network, folder, options.data, "--muon-lr", str(MUON_LR))
    of_two = torch_losses(2, network, folder, options.data, "--muon-lr", str(MUON_LR))
    gradients = weight_files.read(folder + "/gradients.safetensors")
    print(f"{network}: relative differences from PyTorch on one process")
    print(f"  {'':48} losses   gradients")
    print(f"  {'PyTorch, FSDP2 over gloo, 2 ranks':48} {worst_loss(torch['fsdp2'], torch['one']):8.1e} "
          f"{worst_gradient(weight_files.read(folder + '/fsdp2.safetensors'), gradients):8.1e}")
    for strategy in STRATEGIES:
        losses = run_foreshard(options, network, folder, strategy, "--steps", str(STEPS))
        print(f"  {'foreshard ' + strategy:48} {worst_loss(losses, torch['one']):8.1e} "
              f"{worst_gradient(foreshard_gradients(options, network, folder, strategy), gradients):8.1e}")
    bf16 = run_foreshard(options, network, folder, "-n 2 --param-dtype bf16 --reduce-dtype fp32",
                         "--steps", str(STEPS))
    print(f"  {'PyTorch, FSDP2 in bf16':48} {worst_loss(torch['bf16'], torch['one']):8.1e}")
    print(f"  {'foreshard, FSDP2 in bf16':48} {worst_loss(bf16, torch['one']):8.1e}")
    print(f"  {'PyTorch, Muon, FSDP2 over gloo, 2 ranks':48} {worst_loss(of_two, torch['muon']):8.1e}")
    for strategy in ("-n 1 --sharding none", "-n 2", "-n 2 --sharding none"):
        losses = run_foreshard(options, network, folder, strategy + f" --optimizer muon --muon-lr {MUON_LR}",
                               "--steps", str(STEPS))
        print(f"  {'foreshard ' + strategy + ' --optimizer muon':48} {worst_loss(losses, torch['muon']):8.1e}")
    return torch


def alike(a, b, plain):
    """Of what a and b add to the plain gradients, in parts of each one's norm, the cosine."""
    def added(x):
        return [(x[name] - plain[name]) / plain[name].norm() for name in plain]
    dot = sum(float((p * q).sum()) for p, q in zip(added(a), added(b)))
    return dot / math.sqrt(sum(float((p * p).sum()) for p in added(a)) * sum(float((q * q).sum()) for q in added(b)))


FLOAT8 = (("tensorwise", ["--float8", "tensorwise"]), ("rowwise", ["--float8", "rowwise"]),
          ("gathered", ["--float8", "tensorwise", "--float8-gather", "yes"]))


def compare_float8(options, network, folder):
    torch = {"one": torch_losses(1, network, folder, options.data, "--seed", "1",
                                 "--gradients", folder + "/one.safetensors")}
    bf16, plain = "-n 2 --param-dtype bf16 --reduce-dtype fp32 --kernels compiled", None
    print(f"{network}: FSDP2 in bf16 over 2 ranks; relative differences between foreshard and PyTorch")
    print(f"  {'':48} losses   gradients; PyTorch's from bf16's; alike")
    recipes = (("mxfp8", ["--float8", "mxfp8"]),) if options.mxfp8 else FLOAT8
    for name, words in (("bf16", []), *recipes):
        path = f"{folder}/{'gradients' if name == 'bf16' else name}.safetensors"
        torch[name] = torch_losses(2, network, folder, options.data, "--bf16", *words, "--gradients", path)
        strategy, theirs = " ".join([bf16, *words]), weight_files.read(path)
        losses = run_foreshard(options, network, folder, strategy, "--steps", str(STEPS))
        ours, plain = foreshard_gradients(options, network, folder, strategy), plain or theirs
        print(f"  {name:48} {worst_loss(losses, torch[name]):8.1e} {worst_gradient(ours, theirs):8.1e} "
              f"{worst_gradient(theirs, plain):8.1e} "
              + (f"{alike(ours, theirs, plain):6.2f}" if name != "bf16" else ""))
    return torch


def keep(folder, network, losses, names):
    target = os.path.dirname(os.path.abspath(network))
    for name in names:
        shutil.copy(f"{folder}/{name}.safetensors", target)
    with open(os.path.join(target, "losses.json"), "w") as file:
        json.dump(losses, file, indent=1)
        file.write("\n")


def main():
    options = read_options()
    for network in options.networks:
        with tempfile.TemporaryDirectory() as folder:
            losses = (compare_float8 if options.float8 or options.mxfp8 else compare)(options, network, folder)
            if options.keep:
                keep(folder, network, losses,
                     ("weights", "gradients") + (("tensorwise", "rowwise") if options.float8 else ()))


if __name__ == "__main__":
    main()

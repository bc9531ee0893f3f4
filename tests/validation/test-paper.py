"""The FSDP paper's memory (figure 8b), rate limiter (figure 6c) and what it says of both.

test-paper.py FORESHARD: predicts each figure and prints it beside what was measured. What is asserted
is what is reached today, with little room; README.md lists what is missed.
"""
import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'style')]
from tap import Tap

FORESHARD = sys.argv[1]
COMMON = "--flavour fsdp1 --cluster a100-roce --pytorch 1.13 --init unit".split()  # deferred initialization, section 3.1
SETTLED = ("--steps", "20")  # what is published is the pace of many steps; the allocator's first ones differ
STATISTICS = ("allocated", "active", "reserved")
MOST = {"allocated": 0.04, "active": 0.07, "reserved": 0.05}
LEAST_LOSS, LEAST_UNEQUAL_LOSS, MOST_UNEQUAL_LOSS = 0.004, 0.03, 0.06
MIXED = "--limit-all-gathers 2 --param-dtype bf16 --reduce-dtype bf16 --checkpointing full --optimizer adam".split()
UNEQUAL = "--every-rank --spread 0.5".split()  # assumed: of one kind of GPU, by half a percent
MOST_LIMITER_ERROR = 0.35  # on equal ranks
MOST_COLLAPSE_ERROR = 0.35


def predict(network, ranks, batch, *more):
    command = [FORESHARD, "predict", network, "-n", ranks, "--micro-batch", batch, *COMMON, *more, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def rows(name, model):
    with open(os.path.join(HERE, name), newline="") as table:
        return [row for row in csv.DictReader(table) if row["model"] == model]


def memory():
    """Returns what is out of bounds, and which runs retry again and again (192 GPUs, batch 2, does once)."""
    complaints, retrying = [], []
    for row in rows("fsdp_paper_memory.csv", "minGPT-175B"):
        got = predict("mingpt-175b", row["gpus"], row["micro_batch"], "--limit-all-gathers", "2",
                      "--param-dtype", "bf16", "--checkpointing", "full")
        run = f"{row['gpus']} GPUs, batch {row['micro_batch']}"
        line = []
        for name in STATISTICS:
            measured, predicted = float(row[f"peak_{name}_gb"]), got[f"peak_{name}_bytes"] / 1e9
            error = predicted / measured - 1
            line.append(f"{name} {measured:.0f} GB, predicted {predicted:.1f} ({error:+.0%})")
            if abs(error) > MOST[name]:
                complaints.append(f"{run}: {name} is off by more than {MOST[name]:.0%}")
        print(f"# {run}: {'; '.join(line)}; {got['alloc_retries']} retries")
        if got["alloc_retries"] > 1:
            retrying.append(run)
    return complaints, retrying


def ratio_of(name, measured, equal, unequal):
    """A run that retries over one that does not; unequal ranks retry at different moments and wait for each other.
    Returns both errors."""
    errors = equal / measured - 1, unequal / measured - 1
    print(f"# {name}: measured {measured:.2f}, predicted {equal:.2f} ({errors[0]:+.0%}) on equal ranks, "
          f"{unequal:.2f} ({errors[1]:+.0%}) on unequal ones")
    return errors


def limiter():
    """T5-11B, in fp32 and not checkpointed (README.md says why); the others are not in our networks. On unequal ranks
    chance says which retries fall together, so equal ones are judged and those are shown."""
    complaints = []
    for row in rows("fsdp_paper_limiter.csv", "T5-11B"):
        ranks = str(8 * int(row["nodes"]))

        def ratio(*how):
            off, on = (predict("t5-11b", ranks, row["micro_batch"], "--limit-all-gathers", limit, *how)["step_ms"]
                       for limit in ("0", "2"))
            return off / on
        equal = ratio(*SETTLED)
        measured = float(row["latency_s_limiter_off"]) / float(row["latency_s_limiter_on"])
        error, _ = ratio_of(f"limiter off over on, {ranks} GPUs", measured, equal, ratio(*UNEQUAL, "--steps", "12"))
        if abs(error) > MOST_LIMITER_ERROR:
            complaints.append(f"{ranks} GPUs: {error:+.0%}")
    return complaints


def loss(batch, *more):
    few, many = (predict("t5-11b", ranks, batch, *MIXED, *more)["step_ms"] for ranks in ("8", "512"))
    return 1 - few / many


def scaling():
    """What T5-11B loses per GPU from 8 to 512 GPUs (figure 7c): 5 to 8 % at batch 8. A miss, README.md says why: equal
    GPUs lose too little, unequal ones more, as 512 wait for the slowest of more."""
    complaints = []
    table = [row for row in rows("train_fsdp_paper.csv", "T5-11B") if row["gpus"] in ("8", "512")]
    for batch in sorted({row["micro_batch"] for row in table}, key=int):
        few, many = (float(row["tflops_per_gpu"]) for row in table if row["micro_batch"] == batch)
        measured, equal = 1 - many / few, loss(batch)
        line = f"loss of a GPU from 8 to 512, batch {batch}: measured {measured:.1%}, predicted {equal:.1%}"
        print(f"# {line}")
        if not LEAST_LOSS < equal < measured:
            complaints.append(line)
    unequal = loss("8", "--every-rank", "--spread", "2")
    print(f"# the same at batch 8, where GPUs differ by 2 %: {unequal:.1%}")
    return complaints + ([] if LEAST_UNEQUAL_LOSS < unequal < MOST_UNEQUAL_LOSS else [f"unequal: {unequal:.1%}"])


def collapse():
    """GPT-175B, batch 2, 128 GPUs: on unequal ranks retries multiply, and all wait for each rank's."""
    flops, steps = {}, {}
    for gpus in ("128", "192"):
        row = next(row for row in rows("train_fsdp_paper.csv", "minGPT-175B")
                   if row["gpus"] == gpus and row["micro_batch"] == "2")
        flops[gpus] = float(row["tflops_per_gpu"])
        steps[gpus] = predict("mingpt-175b", gpus, "2", *MIXED, *SETTLED)["step_ms"]
    unequal = predict("mingpt-175b", "128", "2", *MIXED, *UNEQUAL, "--steps", "8")["step_ms"]
    equal, collapsed = ratio_of("batch 2, a step on 128 GPUs over one on 192", flops["192"] / flops["128"],
                                steps["128"] / steps["192"], unequal / steps["192"])
    return [] if abs(collapsed) <= MOST_COLLAPSE_ERROR and equal < 0 else [f"{collapsed:+.0%}"]


def main():
    tap = Tap()
    out_of_bounds, retrying = memory()
    tap.case("the paper's peaks", out_of_bounds)
    tap.case("batch 2 on 128 GPUs goes on to retry, and it alone", [] if retrying == ["128 GPUs, batch 2"] else [str(retrying)])
    tap.case("without its limiter T5-11B is slower", limiter())
    tap.case("T5-11B loses some per GPU, more where GPUs differ", scaling())
    tap.case("where it retries, unequal ranks collapse", collapse())
    return tap.finish()


sys.exit(main())

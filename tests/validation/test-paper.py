"""The FSDP paper's memory (figure 8b), rate limiter (figure 6c) and what it says of both.

test-paper.py FORESHARD: predicts each figure and prints it beside what was measured. What is asserted
is what is reached today, with little room; README.md lists what is missed.
"""
import csv
import json
import os
import subprocess
import sys

FORESHARD = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
COMMON = "--flavour fsdp1 --cluster a100-roce --pytorch 1.13".split()
STATISTICS = ("allocated", "active", "reserved")
MOST = {"allocated": 0.04, "active": 0.07, "reserved": 0.18}
LEAST_RATIO, MOST_RATIO_ERROR = 1.5, 0.45


def predict(network, ranks, batch, *more):
    command = [FORESHARD, "predict", network, "-n", ranks, "--micro-batch", batch, *COMMON, *more, "--json"]
    # A strategy that does not fit prints its prediction too, and says so in its exit status.
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def rows(name, model):
    with open(os.path.join(HERE, name), newline="") as table:
        return [row for row in csv.DictReader(table) if row["model"] == model]


def memory():
    """Returns whether all peaks are within bounds, and which runs retry."""
    good, retrying = True, []
    for row in rows("fsdp_paper_memory.csv", "minGPT-175B"):
        got = predict("mingpt-175b", row["gpus"], row["micro_batch"], "--limit-all-gathers", "2",
                      "--param-dtype", "bf16", "--checkpointing", "full")
        line = []
        for name in STATISTICS:
            measured = float(row[f"peak_{name}_gb"])
            error = got[f"peak_{name}_bytes"] / 1e9 / measured - 1
            line.append(f"{name} {measured:.0f} GB, predicted {got[f'peak_{name}_bytes'] / 1e9:.1f} ({error:+.0%})")
            good &= abs(error) <= MOST[name]
        print(f"# {row['gpus']} GPUs, batch {row['micro_batch']}: {'; '.join(line)}; {got['alloc_retries']} retries")
        if got["alloc_retries"]:
            retrying.append((row["gpus"], row["micro_batch"]))
    return good, retrying


def limiter():
    """T5-11B, in fp32 and not checkpointed (README.md says why); the others are not in our networks."""
    good = True
    for row in rows("fsdp_paper_limiter.csv", "T5-11B"):
        ranks = str(8 * int(row["nodes"]))
        off, on = (predict("t5-11b", ranks, row["micro_batch"], "--limit-all-gathers", limit)["step_ms"]
                   for limit in ("0", "2"))
        measured = float(row["latency_s_limiter_off"]) / float(row["latency_s_limiter_on"])
        error = off / on / measured - 1
        print(f"# limiter off against on, {ranks} GPUs: measured {measured:.2f} times, predicted {off / on:.2f} ({error:+.0%})")
        good &= off / on >= LEAST_RATIO and abs(error) <= MOST_RATIO_ERROR
    return good


def main():
    within, retrying = memory()
    results = [("the paper's peaks", within),
               ("batch 2 on 128 GPUs retries, and it alone", retrying == [("128", "2")]),
               ("without its limiter T5-11B is as much slower", limiter())]
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} {name}")
    print(f"1..{len(results)}")
    return 0 if all(good for _, good in results) else 1


sys.exit(main())

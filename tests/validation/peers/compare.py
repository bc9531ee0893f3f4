"""Errors of other predictors and of foreshard on the same published runs, as a table of markdown.

    foreshard validate --json ../train_*.csv > ours.json
    python compare.py ours.json results/*.jsonl
"""

import json
import statistics
import sys

import published

MAIN = ("train_llm_foundry_mpt.csv", "train_fsdp_paper.csv", "train_fms_fsdp.csv", "train_yafsdp.csv", "train_torchtitan.csv",
        "train_kempnerforge.csv")


def read_ours(path):
    with open(path) as file:
        answer = json.load(file)
    return {(table["name"], row["line"]): row for table in answer["files"] for row in table["each"] if "skipped" not in row}


def read_theirs(paths):
    """{tool: {run: {"ms": ..., "gib": ...}}}"""
    tools = {}
    for path in paths:
        with open(path) as file:
            for line in map(json.loads, file):
                if "fails" not in line:
                    tools.setdefault(line["tool"], {})[line["file"], line["line"]] = line
    return tools


def percent(errors):
    """"median, 90th percentile, bias" of relative errors."""
    absolute = sorted(map(abs, errors))
    ninetieth = absolute[min(len(absolute) - 1, int(0.9 * len(absolute)))]
    return f"{100 * statistics.median(absolute):.1f} % | {100 * ninetieth:.1f} % | {100 * statistics.median(errors):+.1f} %"


def device_key(run):
    return published.device_of(run)["model"], published.product_dtype(run["settings"])


def tuned(theirs, ours, runs):
    """Times multiplied by one factor for each kind of GPU and dtype, the median of what is measured there."""
    ratios = {}
    for run in theirs:
        ratios.setdefault(device_key(runs[run]), []).append(ours[run]["measured"] / theirs[run]["ms"])
    return {run: theirs[run]["ms"] * statistics.median(ratios[device_key(runs[run])]) for run in theirs}


def time_rows(tools, ours, runs):
    for tool, lines in tools.items():
        timed = {run: line for run, line in lines.items() if "ms" in line and "measured" in ours.get(run, {})}
        if not timed:
            continue
        for what, chosen in (("all tables", timed), ("the six first tables", {r: l for r, l in timed.items() if r[0] in MAIN})):
            factor = tuned(chosen, ours, runs)
            theirs = [line["ms"] / ours[run]["measured"] - 1 for run, line in chosen.items()]
            fitted = [factor[run] / ours[run]["measured"] - 1 for run in chosen]
            own = [ours[run]["predicted"] / ours[run]["measured"] - 1 for run in chosen]
            print(f"| {tool} | {what}, {len(chosen)} | {percent(theirs)} | {percent(fitted)} | {percent(own)} |")


def memory_rows(tools, ours):
    for tool, lines in tools.items():
        known = {run: line for run, line in lines.items() if "gib" in line and "measured_gib" in ours.get(run, {})}
        if not known:
            continue
        theirs = [line["gib"] / ours[run]["measured_gib"] - 1 for run, line in known.items()]
        own = [ours[run]["predicted_gib"] / ours[run]["measured_gib"] - 1 for run in known]
        print(f"| {tool} | {len(known)} | {percent(theirs)} | {percent(own)} |")


def main():
    ours, tools = read_ours(sys.argv[1]), read_theirs(sys.argv[2:])
    runs = {(run["file"], run["line"]): run for run in published.runs()}
    print("| step time | runs | median | 90th | bias | tuned: median | 90th | bias | foreshard: median | 90th | bias |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    time_rows(tools, ours, runs)
    print("\n| peak of memory | runs | median | 90th | bias | foreshard: median | 90th | bias |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    memory_rows(tools, ours)


if __name__ == "__main__":
    main()

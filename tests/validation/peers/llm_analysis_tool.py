"""What llm-analysis 0.2.2 (Cheng Li, PyPI) says of the published runs: the time of a step and the memory of a GPU.
Writes one line of JSON a run.

    python -m venv FOLDER; FOLDER/bin/pip install llm-analysis==0.2.2
    FOLDER/bin/python llm_analysis_tool.py > results.jsonl
"""

import json
import logging

import published
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import DtypeConfig, GPUConfig, ModelConfig, ParallelismConfig

OF_PEAK = 0.5  # what its constant.py says Megatron-LM reaches, and its examples of training take
RECOMPUTATION = {"none": ActivationRecomputation.NONE, "full": ActivationRecomputation.FULL,
                 "selective-op": ActivationRecomputation.SELECTIVE}
SHARDED = {"fsdp1": DSZeRO.STAGE_3, "fsdp2": DSZeRO.STAGE_3, "ddp": DSZeRO.NONE, "plain": DSZeRO.NONE}


def is_known(run):
    settings = run["settings"]
    beyond = {"context", "pipeline", "lora_rank", "freeze", "float8"} & set(settings)
    full = {"layers", "width", "heads", "vocab", "seq", "batch"} <= set(run["shape"])
    return full and not beyond and settings.get("checkpointing", "none") in RECOMPUTATION and \
        settings.get("network.family") in ("gpt", "mpt", "llama") and "ranks" in settings


def summary_of(run):
    settings, shape = run["settings"], run["shape"]
    device = published.device_of(run)
    kind = published.product_dtype(settings)
    bits = 32 if kind == "fp32" else 16
    ffn = shape.get("ffn", 4 * shape["width"])
    if settings["network.family"] == "llama":
        ffn = ffn * 3 // 2  # it knows of two matrices: three are as many and as large activations
    tensor = int(settings.get("tensor", 1))
    model = ModelConfig(name=run["label"], num_layers=shape["layers"], n_head=shape["heads"], hidden_dim=shape["width"],
                        vocab_size=shape["vocab"], max_seq_len=shape["seq"], ffn_embed_dim=ffn,
                        num_key_value_heads=shape.get("kv_heads", shape["heads"]), expansion_ratio=ffn / shape["width"],
                        model_type=settings["network.family"])
    gpu = GPUConfig(name=device["model"], mem_per_GPU_in_GB=float(device["memory_bytes"]) / 2**30,
                    hbm_bandwidth_in_GB_per_sec=float(device["memory_gb_per_s"]), intra_node_bandwidth_in_GB_per_sec=450,
                    intra_node_min_message_latency=8e-6, peak_fp16_TFLOPS=float(device[f"matmul_{kind}_tflops"]))
    ranks = int(settings["ranks"])
    tool = LLMAnalysis(model, gpu, DtypeConfig(weight_bits=bits, activation_bits=bits, embedding_bits=bits),
                       ParallelismConfig(tp_size=tensor, dp_size=ranks // tensor), flops_efficiency=OF_PEAK,
                       hbm_memory_efficiency=0.9)
    accumulate = int(settings.get("accumulate", 1))
    return tool.training(batch_size_per_gpu=shape["batch"], gradient_accumulation_steps=accumulate,
                         global_batch_size=shape["batch"] * accumulate * ranks // tensor, seq_len=shape["seq"],
                         activation_recomputation=RECOMPUTATION[settings.get("checkpointing", "none")],
                         ds_zero=SHARDED[settings.get("flavour", "fsdp2")],
                         mlp_gated_linear_units=settings["network.family"] == "llama")


def main():
    logging.disable(logging.CRITICAL)
    for run in published.runs():
        if is_known(run):
            line = {"tool": "llm-analysis", "file": run["file"], "line": run["line"]}
            try:
                summary = summary_of(run)
                line |= {"ms": 1000 * summary["latency_per_iter"],
                         "gib": summary["(weight+op_state+grad+act)_memory_per_gpu"] / published.GIB}
            except (AssertionError, ZeroDivisionError) as error:  # what the tool cannot do is a result too
                line["fails"] = f"{type(error).__name__}: {error}"
            print(json.dumps(line))


if __name__ == "__main__":
    main()

/* tests/exec/gpu-runs.h - runs of one plan on CPU ranks and on a GPU, real or emulated.
 *
 * What the files of test-exec-gpu share: where the programs are, and the words that start them.
 */
#pragma once

#include "tests/exec/runs.h"

/* The programs, as the arguments name them, and a folder for what they write. */
typedef struct {
    const char *foreshard, *on_host, *on_gpu;
    bool real;           /* the GPU */
    unsigned watchdog_s; /* seconds without progress that end a run */
    char *folder;
} GpuRuns;
extern GpuRuns gpu_runs;

enum {
    STEPS = 3
};

#define FLOAT8 "llama-toy -n 2 --kernels compiled --param-dtype bf16 "
#define MXFP8                                                                                      \
    "llama-toy -n 2 --network-key layers=1 --network-key width=128 --network-key kv_heads=4 "      \
    "--network-key ffn=256 --micro-batch 4 --param-dtype bf16 --kernels compiled --float8 mxfp8"
#define FLOAT8_SHARED "llama-toy -n 4 --tensor 2 --kernels compiled --param-dtype bf16 "

/* Writes the networks that models/networks has not; plans may name them. */
void gpu_write_networks(void);
/* Makes folder/x.plan by `foreshard plan WORDS`. */
void gpu_plan(const char *words);
/* How many ranks the words ask for. */
unsigned gpu_ranks_of(const char *words);
/* What binds the ranks of a device (--comm). */
const char *gpu_comm_of(const char *device);
/* The words that play x.plan, made of `words`, on a device, with a trace in the folder. Transfer
 * full. */
char *gpu_line_of(const char *words, const char *device, const char *trace);
/* A trace in the folder, which is removed. Transfer full. */
Trace *gpu_trace_of(const char *name);

/* How far losses on a GPU may be from those on CPU ranks. */
#define FP32 2e-6
/* The loss is rounded to the model's dtype, and what leads to it may fall on either side. */
#define BF16 0x1p-6
#define FP16 0x1p-9
/* Under autocast the loss is of fp32; products that lead to it are not. */
#define MIXED 0x1p-9
/* Muon's products are rounded to bf16 15 times, whatever parameters are stored in. */
#define MUON 0x1p-12

typedef struct {
    const char *words;
    double bound; /* of the losses, relative */
} GpuCase;

/* Together they have each op on each axis in each mixture of dtypes that plans have it in, and each
 * setting that changes what a device is asked for. */
extern const GpuCase gpu_cases[];
extern const unsigned gpu_n_cases;

/* Whether this machine has a GPU; *ret_said is what foreshard-exec said of that, if anything.
 * Transfer full. */
bool gpu_is_there(char **ret_said);

/* Adds the cases of runs that fail (gpu-failures.c): some before the others, some behind. */
void gpu_add_first_failures(void);
void gpu_add_last_failures(void);

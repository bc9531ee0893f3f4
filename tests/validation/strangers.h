/* tests/validation/strangers.h - tables as strangers write them, judged.
 *
 * A row of such a table is predicted, or skipped for a reason that says what is missing; what is
 * malformed is an error with its line.
 */
#pragma once

#include <glib.h>

#include "cli/validate/validate.h"

/* Makes the folder that the tables are written to, runs the tests that were added, and removes
 * it. */
int strangers_run(void);

/* The path of a file with this text. Transfer full. */
char *strangers_written(const char *text);

/* The rows of a table that validation takes, as its first. */
const GArray *strangers_rows(CliValidation *validation, const char *table);

/* What rules make of each row, a line each, its settings separated by commas. Transfer full. */
char *strangers_settings_of(const char *table);
/* The setting, as "key=value", is among those that rules give the first row of a table. */
void strangers_expect_setting(const char *table, const char *setting);

/* Row i of the table is skipped, and expected[i] is in the reason; or it is predicted (NULL). */
void strangers_expect(const char *table, const char *const *expected, unsigned n);
#define EXPECT(table, ...)                                                                         \
    do {                                                                                           \
        static const char *const expected[] = {__VA_ARGS__};                                       \
        strangers_expect(table, expected, G_N_ELEMENTS(expected));                                 \
    } while (0)

/* The table is an error, whose message has this in it. */
void strangers_refuse(const char *table, const char *message);

/* A table of training runs: its header; what stands before and behind the model in a row of FSDP's;
 * and elsewhere a shape, from the model on, and a time, to the row's end. */
#define RUNS                                                                                       \
    "hardware,gpus,interconnect,framework,sharding_strategy,model,params,layers,d_model,seq_len,"  \
    "micro_batch,global_batch_seqs,precision,activation_checkpointing,tokens_per_s_per_gpu,"       \
    "tokens_per_s,samples_per_s,step_ms,tflops_per_gpu,mfu_pct,hfu_pct,mlp_type,heads,kv_heads,"   \
    "d_ff,vocab,grad_accum,dp_replicate\n"
#define FSDP  "A100,8,,PyTorch FSDP,,"
#define REST  ",,bf16,,9e4,,,,,,,,,,,,,\n"
#define SHAPE ",x,,2,256,512,2,,"
#define TIME  ",9e4,,,,,,,,,,,,,\n"

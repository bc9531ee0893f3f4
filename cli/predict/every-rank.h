/* cli/predict/every-rank.h - the options of every-rank play.
 *
 *     --every-rank --seed S --jitter PERCENT --spread PERCENT --host-jitter PERCENT
 *     --link-jitter PERCENT --slow WHO:FACTOR --degrade WHO:FACTOR --trace-ranks LIST
 *
 * WHO is rank=3, rank=0-7, node=2 or node=1-3; for --degrade also nvlink= and nic= with ranks.
 *
 * Owns: what was asked. Threads: one.
 */
#pragma once

#include "sim/predict.h"

typedef struct _CliEveryRank CliEveryRank;

extern const char *const cli_jitter_options[SIM_N_JITTERS]; /* "--jitter" and its kin */

CliEveryRank *cli_every_rank_new(GOptionContext *context); /* adds its options */
void cli_every_rank_free(CliEveryRank *every);             /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliEveryRank, cli_every_rank_free)

bool cli_every_rank_is_asked(const CliEveryRank *every);

/* What was asked, into options, which borrow it. Without --every-rank each is played where no one
 * rank can stand for all; elsewhere the other options are refused, as are ranks and nodes that plan
 * and cluster do not have, and factors without sense. */
bool cli_every_rank_settle(CliEveryRank *every, const Plan *plan, const ModelCluster *cluster,
                           SimOptions *options, GError **error);

/* The play is over: takes its progress off the terminal. Before anything is printed. */
void cli_every_rank_played(CliEveryRank *every);

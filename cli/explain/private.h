/* cli/explain/private.h - the parts of an explanation, a file a subject matter.
 */
#pragma once

#include "cli/explain/explain.h"

/* A key of `foreshard predict --json`. */
typedef struct {
    const char *key, *about; /* keys about the same lie side by side in a list */
    void (*explain)(GString *text, const CliSubject *subject);
} ExplainKey;
extern const ExplainKey explain_keys[];
extern const guint explain_n_keys;

/* "; did you mean mfu?" of a word that is no name here; "" when it is near to nothing. Transfer
 * full. */
char *explain_meant_by(const CliSubject *subject, const char *word);
/* Of a word by which others call settings: which they are; NULL: of none, or of a number, too. */
char **explain_settings_called(const char *word);
/* Every name, a line for what those in it are about. Transfer full. */
char *explain_list_names(const CliSubject *subject);

/* What the rows' rank is played on, where nodes are of several kinds. */
static inline const ModelCluster *explain_node(const CliSubject *subject) {
    const ModelCluster *cluster = subject->cluster;
    return model_cluster_node(cluster, subject->summary->rank / cluster->topology_gpus_per_node);
}

/* "in backward of unit blocks.0 (instruction 1072)". */
char *explain_place(const CliSubject *subject, uint32_t instruction);

/* Each appends the number, its formula, and its rows. */
void explain_step(GString *text, const CliSubject *subject);
void explain_rate(GString *text, const CliSubject *subject);
void explain_busy(GString *text, const CliSubject *subject);
void explain_host(GString *text, const CliSubject *subject);
void explain_idle(GString *text, const CliSubject *subject);
void explain_collective(GString *text, const CliSubject *subject, uint32_t kind);

/* A buffer that is held. */
typedef struct {
    uint32_t instruction; /* that allocated it */
    uint32_t category;
    uint64_t bytes;
} ExplainAlive;

/* wanted NULL: all do. */
static inline bool explain_belongs(const Trace *trace, uint32_t category, const char *wanted) {
    return wanted == NULL || trace_category_is(trace, category, wanted);
}

/* Which tensors they are. Nothing where the trace's plan is not known. */
void explain_append_tensors(GString *text, const CliSubject *subject, const GArray *alive,
                            const char *wanted);

void explain_peak(GString *text, const CliSubject *subject, TraceStatistic statistic);
/* category: "activations", or NULL for all. */
void explain_held(GString *text, const CliSubject *subject, const char *category);
void explain_retries(GString *text, const CliSubject *subject);

void explain_held_at_end(GString *text, const CliSubject *subject);

/* Says so and how to have one, where there is no prediction of the trace's plan. */
bool explain_needs_prediction(GString *text, const CliSubject *subject);
void explain_fits(GString *text, const CliSubject *subject);
void explain_published(GString *text, const CliSubject *subject);
void explain_near_edge(GString *text, const CliSubject *subject);
void explain_oom(GString *text, const CliSubject *subject);
void explain_ways_to_fit(GString *text, const CliSubject *subject);
void explain_ways_without_retries(GString *text, const CliSubject *subject);
void explain_dtypes(GString *text, const CliSubject *subject);
void explain_trains_well(GString *text, const CliSubject *subject);
void explain_identity(GString *text, const CliSubject *subject);
void explain_ranks(GString *text, const CliSubject *subject);
void explain_spending(GString *text, const CliSubject *subject);

void explain_pipeline(GString *text, const CliSubject *subject);
void explain_evaluation(GString *text, const CliSubject *subject);

/* Of a key of the strategy; false: the name is none. */
bool explain_setting(GString *text, const CliSubject *subject, const char *name);

void explain_unit(GString *text, const CliSubject *subject, uint32_t unit);
void explain_kind(GString *text, const CliSubject *subject, uint32_t kind);
void explain_instruction(GString *text, const CliSubject *subject, uint32_t instruction);

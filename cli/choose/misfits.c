#include "cli/choose/misfits.h"

#include <pthread.h>

struct _CliMisfitsOfAll {
    pthread_mutex_t mutex;
    GArray *misfits; /* CliMisfit */
};

void cli_misfit_clear(CliMisfit *misfit) {
    g_free(misfit->others);
    g_free(misfit->sharding);
    g_free(misfit->checkpointing);
}

static void clear(gpointer misfit) {
    cli_misfit_clear(misfit);
}

static void append_copy(GArray *misfits, const CliMisfit *misfit) {
    CliMisfit copy = *misfit;
    copy.others = g_strdup(misfit->others);
    copy.sharding = g_strdup(misfit->sharding);
    copy.checkpointing = g_strdup(misfit->checkpointing);
    g_array_append_val(misfits, copy);
}

GArray *cli_misfits_new(void) {
    GArray *misfits = g_array_new(FALSE, FALSE, sizeof(CliMisfit));
    g_array_set_clear_func(misfits, clear);
    return misfits;
}

static bool shards_no_more(const char *sharding, const char *than) {
    return g_str_equal(sharding, than) || g_str_equal(than, "full") ||
           g_str_equal(sharding, "none") ||
           (g_str_equal(sharding, "hybrid-grad-op") &&
            (g_str_equal(than, "hybrid") || g_str_equal(than, "grad-op")));
}

static bool recomputes_no_more(const char *checkpointing, const char *than) {
    return g_str_equal(checkpointing, than) || g_str_equal(than, "full") ||
           g_str_equal(checkpointing, "none");
}

/* One rank shards nothing, and FSDP's copies are only in the way there. */
bool cli_misfits_rule_out(const GArray *misfits, const CliMisfit *candidate) {
    for (guint i = 0; i < misfits->len; i++) {
        const CliMisfit *misfit = &g_array_index(misfits, CliMisfit, i);
        bool same = misfit->ranks == candidate->ranks &&
                    g_str_equal(misfit->others, candidate->others) &&
                    (candidate->ranks > 1 || g_str_equal(misfit->sharding, candidate->sharding));
        if (same && candidate->micro_batch >= misfit->micro_batch &&
            shards_no_more(candidate->sharding, misfit->sharding) &&
            recomputes_no_more(candidate->checkpointing, misfit->checkpointing)) {
            return true;
        }
    }
    return false;
}

CliMisfitsOfAll *cli_misfits_of_all_new(void) {
    CliMisfitsOfAll *known = g_new(CliMisfitsOfAll, 1);
    pthread_mutex_init(&known->mutex, NULL);
    known->misfits = cli_misfits_new();
    return known;
}

void cli_misfits_of_all_free(CliMisfitsOfAll *known) {
    g_array_unref(known->misfits);
    pthread_mutex_destroy(&known->mutex);
    g_free(known);
}

void cli_misfits_of_all_add(CliMisfitsOfAll *known, const CliMisfit *misfit) {
    pthread_mutex_lock(&known->mutex);
    append_copy(known->misfits, misfit);
    pthread_mutex_unlock(&known->mutex);
}

GArray *cli_misfits_of_all_copy(CliMisfitsOfAll *known) {
    GArray *misfits = cli_misfits_new();
    pthread_mutex_lock(&known->mutex);
    for (guint i = 0; i < known->misfits->len; i++) {
        append_copy(misfits, &g_array_index(known->misfits, CliMisfit, i));
    }
    pthread_mutex_unlock(&known->mutex);
    return misfits;
}

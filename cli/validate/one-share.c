#include "cli/validate/one-share.h"

#include <math.h>

#include "trace/quantile.h"

typedef void (*Visitor)(CliValidatedTable *table, CliValidatedRow *row, GHashTable *shares);

static void each_run(CliValidation *validation, Visitor visit, GHashTable *shares) {
    for (guint t = 0; t < validation->tables->len; t++) {
        CliValidatedTable *table = validation->tables->pdata[t];
        for (guint i = 0; i < table->rows->len; i++) {
            CliValidatedRow *row = &g_array_index(table->rows, CliValidatedRow, i);
            if (!row->skipped && row->gpu && row->measured > 0 && row->at_peak_ms > 0) {
                visit(table, row, shares);
            }
        }
    }
}

static void gather(CliValidatedTable *table, CliValidatedRow *row, GHashTable *shares) {
    (void)table;
    GArray *reached = g_hash_table_lookup(shares, row->gpu);
    if (!reached) {
        reached = g_array_new(FALSE, FALSE, sizeof(double));
        g_hash_table_insert(shares, (gpointer)row->gpu, reached);
    }
    double share = row->at_peak_ms / row->measured;
    g_array_append_val(reached, share);
}

static void apply(CliValidatedTable *table, CliValidatedRow *row, GHashTable *shares) {
    row->by_one_share = row->at_peak_ms / trace_median_of(g_hash_table_lookup(shares, row->gpu));
    cli_score_add(&table->scores.one_share, row->by_one_share, row->measured);
}

void cli_one_share_score(CliValidation *validation) {
    g_autoptr(GHashTable) shares =
        g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_array_unref);
    each_run(validation, gather, shares);
    each_run(validation, apply, shares);
}

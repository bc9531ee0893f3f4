/* cli/published/train/case.c - a case's end, and what keeps it from being predicted. */
#include "cli/published/train/case.h"

#include <string.h>

#include "cli/published/train/row.h"

void cli_train_case_clear(CliTrainCase *c) {
    cli_train_row_fields_clear(&c->row);
    g_ptr_array_unref(c->settings);
    model_cluster_free(c->cluster);
    model_network_free(c->network);
    g_clear_pointer(&c->plan, plan_free);
    g_string_free(c->said, TRUE);
    g_free(c->skipped);
}

/* A network that the row describes is named by the row's place, which who reads the reason knows;
 * without it equal reasons of several rows are equal texts. */
static const char *without_place(const CliTrainCase *c, const char *why) {
    g_autofree char *table = g_path_get_basename(c->csv->path);
    g_autofree char *place = g_strdup_printf("%s:%u: ", table, c->row.line);
    return g_str_has_prefix(why, place) ? why + strlen(place) : why;
}

bool cli_train_skip(CliTrainCase *c, const char *why) {
    if (!c->skipped) {
        c->skipped = g_strdup(without_place(c, why));
    }
    return true;
}

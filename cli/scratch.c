#include "cli/scratch.h"

#include <glib/gstdio.h>

#include "cli/pace.h"
#include "plan/text/text.h"

bool cli_scratch_make(CliScratch *ret_scratch, const Plan *plan, const ModelCluster *pace,
                      GError **error) {
    g_auto(CliScratch) scratch = {.folder = g_dir_make_tmp("foreshard-run-XXXXXX", error)};
    if (!scratch.folder) {
        return false;
    }
    scratch.plan = g_build_filename(scratch.folder, "run.plan", NULL);
    scratch.black_box = g_build_filename(scratch.folder, "run.black-box", NULL);
    scratch.pace = pace ? g_build_filename(scratch.folder, "run.pace", NULL) : NULL;
    if (!plan_write_file(plan, scratch.plan, error) ||
        (pace && !cli_pace_write(plan, pace, scratch.pace, error))) {
        return false;
    }
    *ret_scratch = scratch;
    scratch = (CliScratch){0};
    return true;
}

void cli_scratch_clear(CliScratch *scratch) {
    if (scratch->plan) {
        g_unlink(scratch->plan);
    }
    if (scratch->pace) {
        g_unlink(scratch->pace);
    }
    if (scratch->black_box) {
        g_unlink(scratch->black_box);
    }
    if (scratch->folder) {
        g_rmdir(scratch->folder);
    }
    g_clear_pointer(&scratch->plan, g_free);
    g_clear_pointer(&scratch->pace, g_free);
    g_clear_pointer(&scratch->black_box, g_free);
    g_clear_pointer(&scratch->folder, g_free);
}

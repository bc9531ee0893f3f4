#include "cli/launch/scratch.h"

#include "cli/launch/pace.h"
#include "plan/files/leftovers.h"
#include "plan/text/text.h"

bool cli_scratch_make(CliScratch *ret_scratch, const Plan *plan, const ModelCluster *pace,
                      GError **error) {
    g_auto(CliScratch) scratch = {.folder = plan_leftover_folder("foreshard-run-XXXXXX", error)};
    if (!scratch.folder) {
        return false;
    }
    scratch.plan = g_build_filename(scratch.folder, "run.plan", NULL);
    scratch.black_box = g_build_filename(scratch.folder, "run.black-box", NULL);
    scratch.pace = pace ? g_build_filename(scratch.folder, "run.pace", NULL) : NULL;
    if (!plan_write_file(plan, scratch.plan, error) ||
        (pace && !cli_pace_write(plan, pace, scratch.pace, error))) {
        g_prefix_error(error, "a temporary file (TMPDIR names their folder): ");
        return false;
    }
    *ret_scratch = scratch;
    scratch = (CliScratch){0};
    return true;
}

void cli_scratch_clear(CliScratch *scratch) {
    if (scratch->folder) {
        plan_leftover_remove_folder(scratch->folder);
    }
    g_clear_pointer(&scratch->plan, g_free);
    g_clear_pointer(&scratch->pace, g_free);
    g_clear_pointer(&scratch->black_box, g_free);
    g_clear_pointer(&scratch->folder, g_free);
}

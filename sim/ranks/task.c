#include "sim/ranks/task.h"

#include "sim/error.h"
#include "sim/jitter.h"

static bool refuse_any_memory(const SimPrediction *prediction, GError **error) {
    g_set_error(error, SIM_ERROR, SIM_ERROR_PLAN,
                "%s asks for %" G_GUINT64_FORMAT
                " bytes at once, which no memory holds; plan a smaller step",
                prediction->oom.buffer, prediction->oom.bytes);
    return false;
}

bool sim_task_play(const SimTask *task, SimPlayOnce *play_once, Trace *trace, GError **error) {
    PlanAnswer answer = play_once(task, !task->options->boundless, trace, error);
    bool again = !task->prediction->unsupported_dtype && task->options->wanted == SIM_WANTED_ALL;
    if (answer == PLAN_STOPPED && again) {
        answer = play_once(task, false, NULL, error);
        if (answer == PLAN_STOPPED) {
            return refuse_any_memory(task->prediction, error);
        }
    }
    return answer != PLAN_FAILED;
}

double sim_task_slowdown(const SimTask *task) {
    return sim_jitter_slowest(task->cluster->jitter_gpu_percent / 100, task->plan->world);
}

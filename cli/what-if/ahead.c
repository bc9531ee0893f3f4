#include "cli/what-if/ahead.h"

#include "cli/host/workers.h"

typedef struct {
    CliJob job;
    char *changes;
    SimWanted wanted;
    bool is_taken;
    SimPrediction *prediction;
    GError *refusal;
} Question;

struct _CliWhatIfAhead {
    CliWhatIfPredict *predict;
    gconstpointer self;
    CliWorkers *workers;
    GPtrArray *questions; /* Question, in the order given */
};

static void answer(CliJob *job, gpointer self) {
    Question *question = (Question *)job;
    const CliWhatIfAhead *ahead = self;
    question->prediction =
        ahead->predict(ahead->self, question->changes, question->wanted, &question->refusal);
}

static void free_question(gpointer data) {
    Question *question = data;
    g_free(question->changes);
    sim_prediction_free(question->prediction);
    g_clear_error(&question->refusal);
    g_free(question);
}

CliWhatIfAhead *cli_what_if_ahead_new(guint cores, CliWhatIfPredict *predict, gconstpointer self) {
    CliWhatIfAhead *ahead = g_new0(CliWhatIfAhead, 1);
    ahead->predict = predict;
    ahead->self = self;
    ahead->questions = g_ptr_array_new_with_free_func(free_question);
    ahead->workers = cli_workers_new(cores, answer, ahead);
    return ahead;
}

void cli_what_if_ahead_free(CliWhatIfAhead *ahead) {
    if (ahead != NULL) {
        cli_workers_free(ahead->workers);
        g_ptr_array_unref(ahead->questions);
        g_free(ahead);
    }
}

static Question *find(const CliWhatIfAhead *ahead, const char *changes, SimWanted wanted) {
    for (guint i = 0; i < ahead->questions->len; i++) {
        Question *question = ahead->questions->pdata[i];
        if (!question->is_taken && question->wanted == wanted &&
            g_str_equal(question->changes, changes)) {
            return question;
        }
    }
    return NULL;
}

void cli_what_if_ahead_give(CliWhatIfAhead *ahead, const char *changes, SimWanted wanted) {
    Question *question = g_new(Question, 1);
    *question = (Question){.changes = g_strdup(changes), .wanted = wanted};
    g_ptr_array_add(ahead->questions, question);
    cli_workers_give(ahead->workers, &question->job);
}

bool cli_what_if_ahead_take(CliWhatIfAhead *ahead, const char *changes, SimWanted wanted,
                            SimPrediction **ret_prediction, GError **ret_refusal) {
    Question *question = find(ahead, changes, wanted);
    if (question == NULL) {
        return false;
    }
    cli_workers_wait(ahead->workers, &question->job);
    question->is_taken = true;
    *ret_prediction = g_steal_pointer(&question->prediction);
    if (question->refusal != NULL) {
        g_propagate_error(ret_refusal, g_steal_pointer(&question->refusal));
    }
    return true;
}

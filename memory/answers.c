#include "memory/answers.h"

/* Runs of equal answers: no, yes, no, ...; the first may be empty. */
struct _MemoryAnswers {
    GArray *runs; /* uint64_t */
    uint64_t count;
    guint run;      /* that the next answer is of */
    uint64_t given; /* of it */
};

MemoryAnswers *memory_answers_new(void) {
    MemoryAnswers *answers = g_new0(MemoryAnswers, 1);
    answers->runs = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    return answers;
}

void memory_answers_free(MemoryAnswers *answers) {
    if (answers) {
        g_array_unref(answers->runs);
        g_free(answers);
    }
}

static uint64_t *run_at(const MemoryAnswers *answers, guint i) {
    return &g_array_index(answers->runs, uint64_t, i);
}

void memory_answers_add(MemoryAnswers *answers, bool passed) {
    guint n = answers->runs->len;
    if (n == 0 || passed != ((n - 1) % 2 == 1)) { /* a run of yes has an odd number */
        g_array_set_size(answers->runs, n == 0 && passed ? 2 : n + 1);
    }
    ++*run_at(answers, answers->runs->len - 1);
    answers->count++;
}

uint64_t memory_answers_count(const MemoryAnswers *answers) {
    return answers->count;
}

bool memory_answers_next(MemoryAnswers *answers, bool *ret_passed) {
    while (answers->run < answers->runs->len && answers->given == *run_at(answers, answers->run)) {
        answers->run++;
        answers->given = 0;
    }
    if (answers->run == answers->runs->len) {
        return false;
    }
    answers->given++;
    *ret_passed = answers->run % 2 == 1;
    return true;
}

char *memory_answers_text(const MemoryAnswers *answers) {
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < answers->runs->len; i++) {
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i ? " " : "", *run_at(answers, i));
    }
    return g_string_free(text, FALSE);
}

MemoryAnswers *memory_answers_parse(const char *text) {
    g_autoptr(MemoryAnswers) answers = memory_answers_new();
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (guint i = 0; words[i]; i++) {
        guint64 run;
        if (!g_ascii_string_to_unsigned(words[i], 10, i ? 1 : 0, G_MAXINT64, &run, NULL) ||
            run > UINT64_MAX / 2 - answers->count) {
            return NULL;
        }
        g_array_append_val(answers->runs, run);
        answers->count += run;
    }
    return g_steal_pointer(&answers);
}

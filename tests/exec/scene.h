/* tests/exec/scene.h - a run that is to go wrong, with an older trace in its way: how soon it ends,
 * what it says, and what it leaves behind. */
#pragma once

#include "tests/exec/runs.h"

enum {
    TEST_SCENE_SECONDS = 15 /* that a failure may take; on an idle machine it takes one or two */
};

typedef struct {
    char *folder; /* a new one */
    char *trace;  /* in it: the run's --trace, where an older one lies already */
} TestScene;

TestScene test_scene_set(void);
/* Nothing but the trace may be left in the folder. */
void test_scene_leave(TestScene *scene);

/* From now on: that the process ends in time, how, and what it leaves. status: as its exit's.
 * expected: parts of what it says, split by "|". No rank may be left, and the older trace must be
 * as it was. */
void test_scene_ends(const TestScene *scene, GSubprocess *process, int status,
                     const char *expected);
/* text has all parts of `expected`, which are split by "|". */
void test_scene_says(const char *text, const char *expected);

/* Processes with these words in their command line and in their environment: an array of int. */
GArray *test_scene_processes(const char *word, const char *in_environment);
/* The path of foreshard-exec. Transfer full. */
char *test_scene_exec(void);

/* tests/cli/shell.h - foreshard from outside, in a folder of its own: what it is given, prints and
 * ends with. One folder a program; threads: one.
 */
#pragma once

#include <glib.h>

typedef struct {
    const char *program; /* foreshard's path */
    char *folder;        /* where it runs, and files are written */
} Shell;
extern Shell shell;

typedef struct {
    int status;
    char *out, *err;
} Result;
void result_clear(Result *result);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Result, result_clear)

/* The program takes foreshard's path as its one argument. */
void shell_init(int *argc, char ***argv);
/* Removes the folder; returns the status. */
int shell_finish(int status);

/* Words apart by spaces, '' an empty one; <FILE is what it reads from standard input. */
Result run(const char *words);
/* Sentences that were broken to fit (cli/say/prose.h) are one line again. Transfer full. */
char *unbroken(const char *text);
/* Fails the test unless it ends so, and says so on each side, on one line or more. */
void expect(const char *words, int status, const char *in_out, const char *in_err);
void write_file(const char *name, const char *text);
char *read_file(const char *name); /* it must be there */
/* A copy of a cluster with one number changed. */
void write_cluster(const char *name, const char *from, const char *key, const char *value);

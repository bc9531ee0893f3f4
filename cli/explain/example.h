/* cli/explain/example.h - what is explained where nobody names a plan: a run in which the setting
 * asked for changes something, or the one that the lessons of docs/classroom.md have.
 */
#pragma once

typedef struct {
    const char *of; /* settings, blanks between; NULL: all else */
    const char *network, *cluster;
    const char *strategy; /* "ranks=8 param_dtype=bf16" */
} CliExplainExample;

/* name: what is to be explained. */
const CliExplainExample *cli_explain_example(const char *name);

/* exec/error.h - what can go wrong while a plan is played for real. */
#pragma once

#include <glib.h>

#define EXEC_ERROR (exec_error_quark())
GQuark exec_error_quark(void);

typedef enum {
    EXEC_ERROR_INPUT,   /* the plan does not fit this run: rank count, an op not known here */
    EXEC_ERROR_OUTPUT,  /* a file that is asked for cannot be written; found before training */
    EXEC_ERROR_COMM,    /* a collective failed; the message names call and rank */
    EXEC_ERROR_NUMBERS, /* the loss is not a number any more */
    EXEC_ERROR_FAILED,  /* threads, memory mapping, ... */
} ExecError;

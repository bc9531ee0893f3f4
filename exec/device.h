/* exec/device.h - a device that plays a plan for real: a table that exec/host and exec/cuda fill.
 *
 * open() returns the play of one rank (exec/play.h), which is also the self of `instructions`.
 * Threads: the host's.
 */
#pragma once

#include "exec/costs.h"
#include "exec/play.h"
#include "plan/player.h"

struct _ExecDevice {
    const char *name;
    unsigned opening_s; /* s that open() may take, even where the watchdog allows less */
    const PlanDevice *instructions; /* self: the ExecPlay */
    /* For exec_play_fits(). False with error: the device cannot do this op, or these options.
     * suits NULL: it can do any. */
    bool (*knows)(const ExecContext *context, const PlanOp *op, GError **error);
    bool (*suits)(const ExecComm *comm, const ExecOptions *options, GError **error);
    /* Of a plan that exec_play_fits(). comm says which rank this is. */
    ExecPlay *(*open)(const Plan *plan, const ExecComm *comm, uint32_t steps,
                      const ExecOptions *options, GError **error);
    void (*close)(ExecPlay *play);
    /* Waits until all lanes are idle; fails with the first error of a lane. */
    bool (*drain)(ExecPlay *play, GError **error);
    /* Without waiting; false with the first error of a lane. */
    bool (*healthy)(ExecPlay *play, GError **error);
    /* From the device's memory. Drain before. */
    bool (*fetch)(ExecPlay *play, gpointer to, gconstpointer from, gsize bytes, GError **error);
    /* Of its memory, what neither this process nor any other holds. NULL: a limit is all there
     * is. */
    uint64_t (*free_bytes)(void);
    /* Its own facts, into the header of a trace. */
    void (*describe)(const ExecPlay *play, Trace *trace);
    /* Appends lines of exec/costs.h. */
    bool (*costs)(const ExecCosts *costs, GError **error);
    /* Appends what the device is doing, for the watchdog's thread; only reads. NULL: nothing. */
    void (*explain)(const ExecPlay *play, GString *text);
    /* The name of what carries its collectives. NULL: the ExecComm does. */
    const char *(*between)(const ExecPlay *play);
    /* Why attention was computed more slowly than the device could; the hook, or its result, is
     * NULL if it was not. */
    const char *(*attention_refused)(const ExecPlay *play);
};

extern const ExecDevice exec_host; /* CPU cores: exec/host/device.c */
extern const ExecDevice exec_cuda; /* a GPU: exec/cuda/device.c; by way of exec/program/gpu.h */

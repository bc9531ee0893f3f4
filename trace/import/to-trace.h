/* trace/import/to-trace.h - a snapshot as a trace of memory rows, for pictures.
 *
 * It has an instruction for each event, in the order of the run, and no plan: its digest is
 * "none", its phase is called "(not told)", and so is its category, unless the snapshot has one
 * (foreshard's own export). What is held when the window begins comes first, in one row.
 *
 * Steps, where they can be told, are numbered so that they can be laid beside another trace's: its
 * last whole one is the other's last, and what lies before step 0 is construction. Alone the first
 * whole one is step 0. Where they cannot be told, all is step 0.
 */
#pragma once

#include "trace/import/snapshot.h"
#include "trace/trace.h"

#define SNAPSHOT_NO_PLAN "none" /* its digest */

/* beside: the trace that it is to be drawn with, or NULL. The categories of both are the same
 * afterwards: it gets the other's, and the other "(not told)". Transfer full. */
Trace *snapshot_to_trace(const Snapshot *snapshot, Trace *beside);

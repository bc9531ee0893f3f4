/* exec/traced/moves.h - calls of traced networks that only copy parts and fill: what is copied, and
 * where, is the same on any device.
 *
 * A mover is one device's copy and fill; it is given no copy of nothing.
 */
#pragma once

#include "exec/traced/call.h"

typedef enum {
    TRACED_CAT,
    TRACED_STACK,
    TRACED_SELECT_BACKWARD,
    TRACED_SLICE_BACKWARD,
    TRACED_PAD
} TracedMove;

typedef struct {
    void (*copy)(gpointer self, const KernelTensor *to, const KernelTensor *from);
    void (*fill)(gpointer self, const KernelTensor *to, double number);
    gpointer self;
} TracedMover;

/* The call's shapes go together (known.h). */
void traced_move(TracedMove move, const TracedCall *call, const TracedMover *mover);
/* A tensor without a side, at one place of it. */
KernelTensor traced_at_place(const KernelTensor *t, unsigned side, size_t place);

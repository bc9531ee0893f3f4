/* plan/flavours/start.h - what is on the device before a wrapper shards or groups anything.
 *
 * A program makes its network (parameters, then tables of rotary embedding and other buffers), puts
 * adapters into it, makes a batch, and wraps the network then, as recorded. Where no parameter is
 * whole on the device, tables and batch are there alone. Inside plan/ only.
 */
#pragma once

#include "plan/autograd/tensor.h"

typedef void PlanStartParameter(PlanRun *run, uint32_t parameter, gpointer data);

/* make, given data, allocates a parameter; NULL: none is whole. */
void plan_start(PlanRun *run, PlanStartParameter *make, gpointer data);

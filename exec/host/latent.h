/* exec/host/latent.h - ops of latent attention, and of routing beside it (LATENT_OP of ops.def).
 */
#pragma once

#include "exec/host/launch.h"

/* false: an index outside its rows, with error set. */
bool exec_latent_compute(const ExecTask *task, GError **error);

/* exec/host/muon.h - what the optimizer Muon does with one matrix (plan/optimizer/muon.c). */
#pragma once

#include "exec/host/launch.h"

void exec_muon_compute(const ExecTask *task); /* one of the MUON_OPs of plan/op/ops.def */

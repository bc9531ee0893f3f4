/* exec/host/window.h - the mask of attention within a window: from tokens' places to what is added
 * to scores, op by op.
 */
#pragma once

#include "exec/host/launch.h"

void exec_window_compute(const ExecTask *task);

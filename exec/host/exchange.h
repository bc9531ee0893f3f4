/* exec/host/exchange.h - experts that ranks share: which rows go where, in whole numbers.
 *
 * Plans have the sizes of balanced routing, so a rank that is to send, or take, other numbers of
 * rows fails and says so.
 */
#pragma once

#include "exec/host/launch.h"

bool exec_exchange_compute(const ExecTask *task, GError **error);

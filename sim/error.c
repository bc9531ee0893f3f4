#include "sim/error.h"

G_DEFINE_QUARK(foreshard_sim_error, sim_error)

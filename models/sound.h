/* models/sound.h - whether what a network's file says fits together. Inside models/ only. */
#pragma once

#include "models/network.h"
#include "plan/files/ini.h"

/* Else an error that names the line. */
bool model_network_is_sound(const ModelNetwork *network, const PlanIni *ini, GError **error);

/* tests/oracle/recording-private.h - members of a recording's header, and what is made of it. */
#pragma once

#include <stdbool.h>

#include "plan/strategy/strategy.h"
#include "tests/oracle/recording.h"

/* Recordings made by older recorders lack some keys. */
static inline bool is_recorded(JsonObject *object, const char *key) {
    return json_object_has_member(object, key) && !json_object_get_null_member(object, key);
}

static inline bool recorded_flag(JsonObject *object, const char *key) {
    return json_object_get_boolean_member(object, key);
}

static inline bool recorded_yes(JsonObject *object, const char *key) {
    return is_recorded(object, key) && recorded_flag(object, key);
}

static inline double recorded_real(JsonObject *object, const char *key) {
    return is_recorded(object, key) ? json_object_get_double_member(object, key) : 0;
}

/* "" where it is no text. */
const char *recorded_text(JsonObject *object, const char *key);
gint64 recorded_int(JsonObject *object, const char *key); /* 0: none */
bool recorded_is(JsonObject *object, const char *key, const char *text);

bool recording_has_experts(const Recording *recording);
bool recording_is_before_2_1(const Recording *recording); /* by which PyTorch it was made */
/* Sets error: a plan cannot express that yet. Returns false. */
bool recording_refuse(const Recording *recording, GError **error, const char *what);

/* The network's text, as a file of models/networks has it. */
char *recorded_network_text(const Recording *recording, GError **error);
/* From now on the network is what this file has. */
void recorded_network_take(const char *path);

/* The strategy, but for what follows from the network. */
bool recorded_strategy(const Recording *recording, RecordingProgram program,
                       PlanStrategy *ret_strategy, GError **error);

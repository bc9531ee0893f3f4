/* tests/oracle/recording.h - a file that the recorder of real PyTorch wrote, line by line.
 *
 * The recorder (record_fsdp.py, torch 2.13.0) writes JSON lines: a header with every setting, with
 * --events one line per event, and a summary per step.
 */
#pragma once

#include <json-glib/json-glib.h>

#include "plan/plan.h"

typedef struct {
    char *file_name;
    JsonObject *header;
    GPtrArray *summaries;    /* JsonObject, one a step */
    GPtrArray *events;       /* GPtrArray of JsonObject, one a step; empty without --events */
    GPtrArray *construction; /* JsonObject, its events; empty without --construction */
} Recording;

Recording *recording_read(const char *path, GError **error);
void recording_free(Recording *recording);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Recording, recording_free)

/* A main(): the worst status of the files named, or 2 and how to call the program where none is. */
int recording_check_all(const char *program, int argc, char **argv,
                        int (*check_file)(const char *path));

/* The rank that was recorded, of the plan's; of one rank by itself its only one. */
uint32_t recording_rank(const Recording *recording, const Plan *plan);

/* A recorder whose fake tensors answer from PyTorch's cache (the reference's; this project's turns
 * it off) forgets, of most gradients of a T5's bias, what pads their storage behind the last row:
 * so many bytes. 0 in all other recordings. */
uint64_t recording_forgotten_bytes(const Recording *recording);
/* Whether each block was compiled, not as one program but in parts (around experts); or, with them,
 * all of the network. */
bool recording_is_compiled(const Recording *recording);
bool recording_is_compiled_in_parts(const Recording *recording);
bool recording_is_compiled_whole(const Recording *recording);

/* Whether the third step is another than the second and those behind it: DDP of a static graph
 * makes its buckets anew there (plan/flavours/ddp.c). */
bool recording_has_third_kind(const Recording *recording);

/* Whether lanes can be compared. What DDP, interleaved stages and all versions before 2.1 reduce or
 * gather is on lanes of c10d, in C++. */
bool recording_knows_lanes(const Recording *recording);
/* Whether FSDP1 shards in groups of one rank, and keeps copies between them. */
bool recording_has_groups_of_one(const Recording *recording);

/* Whose program the plan is of, which a header does not say. The recorders' loops never wait for
 * the device; recorder/to_allocator.py synchronizes where a step ends. Both begin with the shards
 * alone; before that recorder/ has a network that was whole, as --construction says.
 * gpu/record_memory.py begins with what wrapping leaves: FSDP1 unit by unit or, with --real-start,
 * either FSDP of a network that was whole. */
typedef enum {
    RECORDING_OF_RECORDER,
    RECORDING_OF_CONSTRUCTION,
    RECORDING_OF_ALLOCATOR,
    RECORDING_OF_GPU,
    RECORDING_OF_DETERMINISTIC /* the recorder's, had it asked for deterministic algorithms */
} RecordingProgram;

/* The plan for the header's settings. A setting that a plan cannot express yet is an error naming
 * it. */
Plan *recording_plan(const Recording *recording, RecordingProgram program, GError **error);

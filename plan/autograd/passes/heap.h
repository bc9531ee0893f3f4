/* plan/autograd/passes/heap.h - the nodes of autograd that are ready to run, the one that forward
 * made last first. Inside plan/ only. */
#pragma once

#include <glib.h>
#include <stdint.h>

/* A max-heap of numbers, in an array of uint32_t. */
void plan_heap_push(GArray *heap, uint32_t node);
uint32_t plan_heap_pop(GArray *heap); /* of one that is not empty */

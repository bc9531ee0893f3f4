/* plan/autograd/heap.h - nodes that may run, the one made last first. Inside plan/ only. */
#pragma once

#include <glib.h>
#include <stdint.h>

/* A max-heap of numbers, in an array of uint32_t. */
void plan_heap_push(GArray *heap, uint32_t node);
uint32_t plan_heap_pop(GArray *heap); /* of one that is not empty */

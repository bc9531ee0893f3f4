#include "plan/autograd/passes/heap.h"

void plan_heap_push(GArray *heap, uint32_t node) {
    g_array_append_val(heap, node);
    uint32_t *data = (uint32_t *)(gpointer)heap->data;
    for (uint32_t i = heap->len - 1; i && data[(i - 1) / 2] < data[i]; i = (i - 1) / 2) {
        uint32_t parent = data[(i - 1) / 2];
        data[(i - 1) / 2] = data[i];
        data[i] = parent;
    }
}

/* The last of them sinks from the top to its place. */
uint32_t plan_heap_pop(GArray *heap) {
    uint32_t *data = (uint32_t *)(gpointer)heap->data;
    uint32_t top = data[0], n = heap->len - 1;
    data[0] = data[n];
    g_array_set_size(heap, n);
    for (uint32_t i = 0;;) {
        uint32_t child = 2 * i + 1;
        if (child >= n) {
            return top;
        }
        child += child + 1 < n && data[child + 1] > data[child];
        if (data[i] >= data[child]) {
            return top;
        }
        uint32_t moved = data[i];
        data[i] = data[child];
        data[child] = moved;
        i = child;
    }
}

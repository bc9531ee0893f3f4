/* models/layers/rotary.h - rotary embedding of queries and keys. Inside models/ only. */
#pragma once

#include "models/layers/attention.h"

typedef struct {
    uint32_t cosines, sines; /* values, as model_cast_tables() left them */
    uint32_t frequencies;    /* transformers': what each pass makes them of */
    bool is_complex;         /* pairs are turned as complex numbers in fp32, by one table */
    bool ends_joined;        /* what is rotated is joined with an empty rest, which copies it */
    bool is_together;        /* one function rotates q and k, each expression from left to right */
    bool is_wide;            /* so, in fp32 as its tables are, and what is rotated is rounded */
    bool is_paired;     /* so, neighbours in a head, by tables that each block makes for them ... */
    bool tables_paired; /* ... or that come so */
    bool is_widened;    /* what is rotated is made fp32 before, and rounded */
    bool factors_widened; /* so, each factor by itself */
    bool is_halved;       /* so, each half of a head by tables of half its width, and both joined */
    uint64_t row;         /* elements from a token's heads to the next one's; 0: they are dense */
    uint64_t part;        /* how many numbers of a head are rotated, the first ones; 0: all */
} ModelRotary;

/* Sets the graph's tables of that number, in the dtype of x; complex ones in fp32. */
void model_cast_tables(const ModelWalk *w, ModelRotary *rotary, unsigned tables, uint32_t x);
/* Each of the first `numbers` numbers of a table's rows of `width` twice. */
uint32_t model_each_twice(const ModelWalk *w, uint32_t table, uint64_t numbers, uint64_t width);
/* Rotates queries and keys by their positions. Inputs and intermediates are freed in PyTorch's
 * order. */
void model_rotate(const ModelWalk *w, const ModelRotary *rotary, const ModelAttention *a,
                  uint32_t *q, uint32_t *k, uint32_t v);

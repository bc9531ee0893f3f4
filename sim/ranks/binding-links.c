#include "sim/ranks/binding-links.h"

/* Links of one kind have been used by the same communicators so far, each equally often. */
typedef struct {
    const SimFabric *fabric;
    uint32_t *kinds; /* by link; 0: used by none */
    uint32_t n_kinds;
    /* Of the communicator at hand: */
    uint32_t *uses;      /* by link; zero between two */
    GHashTable *of_uses; /* a kind and how often it is used, to the new kind */
} Sorter;

static uint32_t link_at(const SimCommunicator *communicator, guint i) {
    return g_array_index(communicator->links, uint32_t, i);
}

static uint32_t kind_after(Sorter *sorter, uint32_t kind, uint32_t uses) {
    uint64_t key = (uint64_t)kind << 32 | uses;
    gpointer known = g_hash_table_lookup(sorter->of_uses, &key);
    if (!known) {
        known = GUINT_TO_POINTER(sorter->n_kinds++);
        g_hash_table_insert(sorter->of_uses, g_memdup2(&key, sizeof(key)), known);
    }
    return GPOINTER_TO_UINT(known);
}

/* Tells links that this communicator uses from those that it does not, or uses less often. */
static void tell_apart(Sorter *sorter, const SimCommunicator *communicator) {
    g_hash_table_remove_all(sorter->of_uses);
    for (guint i = 0; i < communicator->links->len; i++) {
        sorter->uses[link_at(communicator, i)]++;
    }
    for (guint i = 0; i < communicator->links->len; i++) {
        uint32_t link = link_at(communicator, i);
        if (sorter->uses[link]) {
            sorter->kinds[link] = kind_after(sorter, sorter->kinds[link], sorter->uses[link]);
            sorter->uses[link] = 0;
        }
    }
}

/* By kind, the link that carries least, of several the first; n_links: none. */
static uint32_t *least_of_kinds(const Sorter *sorter) {
    uint32_t *least = g_new(uint32_t, sorter->n_kinds), none = sorter->fabric->n_links;
    const double *capacities = sorter->fabric->capacities;
    for (uint32_t kind = 0; kind < sorter->n_kinds; kind++) {
        least[kind] = none;
    }
    for (uint32_t link = 0; link < none; link++) {
        uint32_t *best = &least[sorter->kinds[link]];
        if (*best == none || capacities[link] < capacities[*best]) {
            *best = link;
        }
    }
    return least;
}

static void keep(SimCommunicator *communicator, const uint32_t *numbers) {
    guint n = 0;
    for (guint i = 0; i < communicator->links->len; i++) {
        uint32_t number = numbers[link_at(communicator, i)];
        if (number != UINT32_MAX) {
            g_array_index(communicator->links, uint32_t, n++) = number;
        }
    }
    g_array_set_size(communicator->links, n);
}

/* One link of every kind that is used stays, and the links are numbered anew. */
static void renumber(SimCommunicators *communicators, const Sorter *sorter) {
    uint32_t n_links = sorter->fabric->n_links;
    g_autofree uint32_t *least = least_of_kinds(sorter), *numbers = g_new(uint32_t, n_links);
    communicators->capacities = g_new(double, sorter->n_kinds);
    for (uint32_t link = 0; link < n_links; link++) {
        uint32_t kind = sorter->kinds[link];
        numbers[link] = UINT32_MAX;
        if (kind != 0 && least[kind] == link) {
            communicators->capacities[communicators->n_links] = sorter->fabric->capacities[link];
            numbers[link] = communicators->n_links++;
        }
    }
    for (uint32_t i = 0; i < communicators->n; i++) {
        keep(&communicators->all[i], numbers);
    }
}

void sim_keep_binding_links(SimCommunicators *communicators, const SimFabric *fabric) {
    g_autofree uint32_t *kinds = g_new0(uint32_t, fabric->n_links);
    g_autofree uint32_t *uses = g_new0(uint32_t, fabric->n_links);
    g_autoptr(GHashTable) of_uses =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    Sorter sorter = {fabric, kinds, 1, uses, of_uses};
    for (uint32_t i = 0; i < communicators->n; i++) {
        tell_apart(&sorter, &communicators->all[i]);
    }
    renumber(communicators, &sorter);
}

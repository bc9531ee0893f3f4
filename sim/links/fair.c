/* sim/links/fair.c - progressive filling, by components.
 *
 * Links and users are a graph in two parts, joined by entries: one for each link of each path. An
 * entry sits in its user's block and in its link's list, so that a user comes and goes in the
 * length of its path. A change marks the links it touches. A solve walks from each marked link to
 * all that hangs together with it and fills that component: the link whose capacity, divided among
 * its users, is least, holds them all to that rate; their rate is taken off the other links they
 * use; and so on with the users left. What a link has for each user that is left never falls while
 * others are held at less, so a heap of old values serves: one that has grown meanwhile goes back
 * in.
 */
#include "sim/links/fair.h"

#include <math.h>
#include <stdbool.h>

#define NONE UINT32_MAX

typedef struct {
    uint32_t user, link, next, previous; /* of the link's list */
} Entry;

typedef struct {
    double capacity, left;
    uint32_t first, last, n; /* entries, in the order in which their users came */
    uint32_t n_open;         /* of them, not yet held to a rate */
    uint32_t walk;           /* the last walk that met it */
    bool marked;
} Link;

typedef struct {
    double rate, before;
    uint32_t first, n; /* its block of entries */
    uint32_t walk;
    bool open;
} User;

typedef struct {
    double share;
    uint32_t link;
} Offer;

struct _SimFair {
    Link *links;
    uint32_t n_links;
    GArray *users;                   /* User */
    GArray *free_users;              /* uint32_t */
    GArray *entries;                 /* Entry */
    GArray *free_blocks;             /* uint32_t: by length, the first of a chain by `next` */
    GArray *marked;                  /* uint32_t: links */
    GArray *reached_links, *reached; /* uint32_t: of the component at hand */
    GArray *offers, *changed;        /* Offer, uint32_t */
    uint32_t walk;
};

static User *user_at(const SimFair *fair, uint32_t user) {
    return &g_array_index(fair->users, User, user);
}

static Entry *entry_at(const SimFair *fair, uint32_t entry) {
    return &g_array_index(fair->entries, Entry, entry);
}

SimFair *sim_fair_new(const double *capacities, uint32_t n_links) {
    SimFair *fair = g_new0(SimFair, 1);
    fair->links = g_new0(Link, n_links);
    fair->n_links = n_links;
    for (uint32_t i = 0; i < n_links; i++) {
        g_assert(capacities[i] > 0);
        fair->links[i] = (Link){.capacity = capacities[i], .first = NONE, .last = NONE};
    }
    fair->users = g_array_new(FALSE, FALSE, sizeof(User));
    fair->free_users = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    fair->entries = g_array_new(FALSE, FALSE, sizeof(Entry));
    fair->free_blocks = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    fair->marked = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    fair->reached_links = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    fair->reached = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    fair->offers = g_array_new(FALSE, FALSE, sizeof(Offer));
    fair->changed = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    return fair;
}

void sim_fair_free(SimFair *fair) {
    if (fair) {
        g_free(fair->links);
        g_array_unref(fair->users);
        g_array_unref(fair->free_users);
        g_array_unref(fair->entries);
        g_array_unref(fair->free_blocks);
        g_array_unref(fair->marked);
        g_array_unref(fair->reached_links);
        g_array_unref(fair->reached);
        g_array_unref(fair->offers);
        g_array_unref(fair->changed);
        g_free(fair);
    }
}

double sim_fair_rate(const SimFair *fair, uint32_t user) {
    return user_at(fair, user)->rate;
}

/* ---- users come and go ---------------------------------------------------------------------- */

static uint32_t take_block(SimFair *fair, uint32_t length) {
    while (fair->free_blocks->len <= length) {
        const uint32_t none = NONE;
        g_array_append_val(fair->free_blocks, none);
    }
    uint32_t *chain = &g_array_index(fair->free_blocks, uint32_t, length);
    uint32_t first = *chain;
    if (first == NONE) {
        first = fair->entries->len;
        g_array_set_size(fair->entries, first + length);
    } else {
        *chain = entry_at(fair, first)->next;
    }
    return first;
}

static uint32_t take_user(SimFair *fair) {
    if (fair->free_users->len) {
        uint32_t user = g_array_index(fair->free_users, uint32_t, fair->free_users->len - 1);
        g_array_set_size(fair->free_users, fair->free_users->len - 1);
        return user;
    }
    g_array_set_size(fair->users, fair->users->len + 1);
    return fair->users->len - 1;
}

static void mark(SimFair *fair, uint32_t link) {
    if (!fair->links[link].marked) {
        fair->links[link].marked = true;
        g_array_append_val(fair->marked, link);
    }
}

uint32_t sim_fair_add(SimFair *fair, const uint32_t *path, uint32_t n) {
    g_assert(n > 0);
    uint32_t user = take_user(fair), first = take_block(fair, n);
    *user_at(fair, user) = (User){.first = first, .n = n, .walk = fair->walk};
    for (uint32_t i = 0; i < n; i++) {
        g_assert(path[i] < fair->n_links);
        Link *link = &fair->links[path[i]];
        *entry_at(fair, first + i) = (Entry){user, path[i], NONE, link->last};
        *(link->last == NONE ? &link->first : &entry_at(fair, link->last)->next) = first + i;
        link->last = first + i;
        link->n++;
        mark(fair, path[i]);
    }
    return user;
}

void sim_fair_remove(SimFair *fair, uint32_t user) {
    User *leaving = user_at(fair, user);
    for (uint32_t i = leaving->first; i < leaving->first + leaving->n; i++) {
        const Entry *entry = entry_at(fair, i);
        Link *link = &fair->links[entry->link];
        *(entry->next == NONE ? &link->last : &entry_at(fair, entry->next)->previous) =
            entry->previous;
        *(entry->previous == NONE ? &link->first : &entry_at(fair, entry->previous)->next) =
            entry->next;
        link->n--;
        mark(fair, entry->link);
    }
    uint32_t *chain = &g_array_index(fair->free_blocks, uint32_t, leaving->n);
    entry_at(fair, leaving->first)->next = *chain;
    *chain = leaving->first;
    g_array_append_val(fair->free_users, user);
}

/* ---- a component ---------------------------------------------------------------------------- */

static void reach_link(SimFair *fair, uint32_t index) {
    Link *link = &fair->links[index];
    if (link->walk != fair->walk && link->n) {
        link->walk = fair->walk;
        link->left = link->capacity;
        link->n_open = link->n;
        g_array_append_val(fair->reached_links, index);
    }
}

static void reach_user(SimFair *fair, uint32_t index) {
    User *user = user_at(fair, index);
    if (user->walk == fair->walk) {
        return;
    }
    user->walk = fair->walk;
    user->open = true;
    user->before = user->rate;
    g_array_append_val(fair->reached, index);
    for (uint32_t i = user->first; i < user->first + user->n; i++) {
        reach_link(fair, entry_at(fair, i)->link);
    }
}

/* All that hangs together with a link. */
static void walk_from(SimFair *fair, uint32_t link) {
    g_array_set_size(fair->reached_links, 0);
    g_array_set_size(fair->reached, 0);
    reach_link(fair, link);
    for (guint i = 0; i < fair->reached_links->len; i++) {
        uint32_t at = g_array_index(fair->reached_links, uint32_t, i);
        for (uint32_t e = fair->links[at].first; e != NONE; e = entry_at(fair, e)->next) {
            reach_user(fair, entry_at(fair, e)->user);
        }
    }
}

/* ---- a heap of what links offer, the least first -------------------------------------------- */

static void sink(Offer *heap, guint n, guint place, Offer offer) {
    for (guint child = 2 * place + 1; child < n; child = 2 * place + 1) {
        if (child + 1 < n && heap[child + 1].share < heap[child].share) {
            child++;
        }
        if (heap[child].share >= offer.share) {
            break;
        }
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = offer;
}

static void make_offers(SimFair *fair) {
    guint n = fair->reached_links->len;
    g_array_set_size(fair->offers, n);
    Offer *heap = (Offer *)(gpointer)fair->offers->data;
    for (guint i = 0; i < n; i++) {
        uint32_t index = g_array_index(fair->reached_links, uint32_t, i);
        const Link *link = &fair->links[index];
        heap[i] = (Offer){link->left / link->n_open, index};
    }
    for (guint i = n / 2; i-- > 0;) {
        sink(heap, n, i, heap[i]);
    }
}

/* ---- filling -------------------------------------------------------------------------------- */

static void hold(SimFair *fair, uint32_t index, double rate) {
    User *user = user_at(fair, index);
    user->open = false;
    user->rate = rate;
    for (uint32_t i = user->first; i < user->first + user->n; i++) {
        Link *link = &fair->links[entry_at(fair, i)->link];
        link->left = fmax(0, link->left - rate);
        link->n_open--;
    }
    if (rate != user->before) {
        g_array_append_val(fair->changed, index);
    }
}

static void fill(SimFair *fair) {
    make_offers(fair);
    Offer *heap = (Offer *)(gpointer)fair->offers->data;
    guint n = fair->offers->len;
    while (n > 0) {
        const Link *link = &fair->links[heap[0].link];
        double share = link->n_open ? link->left / link->n_open : INFINITY;
        if (link->n_open && share > heap[0].share) {
            sink(heap, n, 0, (Offer){share, heap[0].link});
            continue;
        }
        for (uint32_t e = link->n_open ? link->first : NONE; e != NONE;
             e = entry_at(fair, e)->next) {
            uint32_t user = entry_at(fair, e)->user;
            if (user_at(fair, user)->open) {
                hold(fair, user, share);
            }
        }
        n--;
        sink(heap, n, 0, heap[n]);
    }
}

uint32_t sim_fair_solve(SimFair *fair, const uint32_t **ret_changed) {
    g_array_set_size(fair->changed, 0);
    fair->walk++;
    for (guint i = 0; i < fair->marked->len; i++) {
        uint32_t link = g_array_index(fair->marked, uint32_t, i);
        fair->links[link].marked = false;
        if (fair->links[link].walk != fair->walk && fair->links[link].n) {
            walk_from(fair, link);
            fill(fair);
        }
    }
    g_array_set_size(fair->marked, 0);
    *ret_changed = (const uint32_t *)(gconstpointer)fair->changed->data;
    return fair->changed->len;
}

#include "cli/choose/machines.h"

#include <stdbool.h>
#include <string.h>

#include "cli/source/cluster.h"
#include "plan/plan.h"

static void set_price(ModelCluster *cluster, double price) {
    for (uint32_t kind = 0; kind <= cluster->n_kinds; kind++) {
        model_cluster_kind(cluster, kind)->device_price_per_hour = price;
    }
}

/* A machine is meant by what it was called, by its name, or by that without its :NODES. */
static bool is_meant(const char *name, const char *called, const ModelCluster *cluster) {
    gsize without_nodes = strcspn(cluster->name, ":");
    return g_str_equal(name, called) || g_str_equal(name, cluster->name) ||
           (strlen(name) == without_nodes && strncmp(name, cluster->name, without_nodes) == 0);
}

/* The last of two prices would win, and nobody be told. */
static bool check_prices(char *const *prices, GError **error) {
    for (guint i = 0; prices[i] != NULL; i++) {
        const char *equals = strrchr(prices[i], '=');
        gsize name = equals != NULL ? (gsize)(equals - prices[i]) + 1 : 0;
        for (guint j = 0; j < i; j++) {
            bool is_same_machine = equals != NULL ? strncmp(prices[i], prices[j], name) == 0
                                                  : strchr(prices[j], '=') == NULL;
            if (is_same_machine && !g_str_equal(prices[i], prices[j])) {
                g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                            "--price is given twice for the same machines, as %s and as %s; give "
                            "one, or name the machine of each: --price dgx-h100=2.50",
                            prices[j], prices[i]);
                return false;
            }
        }
    }
    return true;
}

/* "2.50" of all, or "dgx-h100=2.50". */
static bool take_price(const char *text, char **names, const GPtrArray *clusters, GError **error) {
    const char *equals = strrchr(text, '=');
    g_autofree char *name = equals != NULL ? g_strndup(text, (gsize)(equals - text)) : NULL;
    double price;
    bool any = false;
    bool is_number = plan_parse_double(equals != NULL ? equals + 1 : text, &price);
    if (is_number && price == 0) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--price %s: what costs nothing has no price to be ranked by; leave --price "
                    "out, and rows are ranked by speed, or give what an hour of your own GPU costs "
                    "you: its purchase over the hours that it will serve, and its power",
                    text);
        return false;
    }
    if (!is_number || price <= 0) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--price %s: give what an hour of a GPU costs, as in --price 2.50 or --price "
                    "dgx-h100=2.50",
                    text);
        return false;
    }
    for (guint i = 0; i < clusters->len; i++) {
        ModelCluster *cluster = clusters->pdata[i];
        if (name == NULL || is_meant(name, names[i], cluster)) {
            set_price(cluster, price);
            any = true;
        }
    }
    if (!any) {
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--price %s: there is no --cluster %s here; name one that is given", text,
                    name);
    }
    return any;
}

/* Those of all machines first, whatever their order, so that a machine's own price holds. */
static bool take_prices(char **prices, char **names, const GPtrArray *clusters, GError **error) {
    for (int own = 0; own <= 1; own++) {
        for (char **price = prices; *price != NULL; price++) {
            bool is_own = strchr(*price, '=') != NULL;
            if (is_own == own && !take_price(*price, names, clusters, error)) {
                return false;
            }
        }
    }
    return true;
}

bool cli_machine_is_priced(const ModelCluster *cluster) {
    bool is = true;
    for (uint32_t kind = 0; kind <= cluster->n_kinds; kind++) {
        is &= model_cluster_kind(cluster, kind)->device_price_per_hour > 0;
    }
    return is;
}

static bool have_prices(const GPtrArray *clusters, GError **error) {
    for (guint i = 0; i < clusters->len; i++) {
        const ModelCluster *cluster = clusters->pdata[i];
        if (!cli_machine_is_priced(cluster)) {
            g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                        "--budget asks what a training costs, and no price of %s is known: give "
                        "what an hour of a GPU costs, as in --price %s=2.50%s",
                        cluster->name, cluster->name,
                        cluster->n_kinds > 0 ? ", or in its file that of each kind of node" : "");
            return false;
        }
    }
    return true;
}

/* As though that much of each GPU's memory were somebody else's. */
static void keep_free(ModelCluster *cluster, double percent) {
    for (uint32_t kind = 0; kind <= cluster->n_kinds; kind++) {
        ModelCluster *machine = model_cluster_kind(cluster, kind);
        double bytes = (double)model_cluster_allocator_bytes(machine) * percent / 100;
        machine->device_outside_allocator_bytes += (uint64_t)bytes;
    }
}

static void free_cluster(gpointer cluster) {
    model_cluster_free(cluster);
}

GPtrArray *cli_choose_machines(char **names, char **prices, double spare_percent, bool has_budget,
                               GError **error) {
    g_autoptr(GPtrArray) clusters = g_ptr_array_new_with_free_func(free_cluster);
    for (guint i = 0; names[i] != NULL; i++) {
        ModelCluster *cluster = cli_cluster_read(names[i], error);
        if (cluster == NULL) {
            return NULL;
        }
        cli_cluster_note(cluster);
        keep_free(cluster, spare_percent);
        g_ptr_array_add(clusters, cluster);
    }
    bool are_sound = prices == NULL ||
                     (check_prices(prices, error) && take_prices(prices, names, clusters, error));
    return are_sound && (!has_budget || have_prices(clusters, error)) ? g_steal_pointer(&clusters)
                                                                      : NULL;
}

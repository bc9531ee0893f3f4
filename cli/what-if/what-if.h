/* cli/what-if/what-if.h - the plan of a trace, built again from the trace's header and played with
 * a setting or the machine changed.
 *
 * That the rebuilt plan is the trace's is checked by its digest. A header without one is of a plan
 * that was built here for one rank (plan/build/build.h), from that very network and strategy.
 *
 * Where ranks are not alike, the plan as it is is played with each of them, and what is changed
 * with one on each kind of node (sim/ranks/every.h), in a tenth of the time: steps and peaks of ten
 * plans on spines and on nodes of two and three kinds were the same within 0.1 %. Each is played
 * again where memory is given back or less than 2 % of it is left, and from the first of stages
 * (off by 0.2 %) and of what only every rank can have: a trouble, or jitter of kernels, hosts or
 * links.
 *
 * Owns: what it is asked for belongs to the caller. Cost: a question builds and plays a plan.
 */
#pragma once

#include "models/cluster.h"
#include "models/network.h"
#include "plan/strategy/strategy.h"
#include "sim/settings.h"
#include "trace/trace.h"

typedef struct _CliWhatIfAhead CliWhatIfAhead;

typedef struct {
    ModelNetwork *network;
    char **network_keys; /* "key=value", as the trace has them */
    ModelCluster *cluster;
    PlanStrategy strategy; /* as the plan had it */
    GHashTable *settings;  /* key: value, as the trace has them; the network's as "network.KEY" */
    SimSettings *asked;    /* how the trace was predicted, and what is asked for is too */
    const char *unlike;    /* why no rank stands for all, "nodes of several kinds", where one on
                            * each kind of node is played of what is changed; NULL: as asked */
    CliWhatIfAhead *ahead; /* NULL: nothing is predicted before it is asked for */
} CliWhatIf;

/* Of the trace's network: what its title begins with. Transfer full. */
char *cli_network_name(const Trace *trace);

/* Where the network was read from, as a trace's header has it; NULL: it was not traced. Transfer
 * full. */
char *cli_traced_file(const char *network);

/* cluster: a name or a file; NULL: the one that the trace names. */
CliWhatIf *cli_what_if_new(const Trace *trace, const char *cluster, GError **error);
/* The same on a cluster that was read. */
CliWhatIf *cli_what_if_on(const Trace *trace, const ModelCluster *cluster, GError **error);
void cli_what_if_free(CliWhatIf *what_if); /* NULL is fine */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliWhatIf, cli_what_if_free)

/* The value that the strategy has for a key, or the network for "network.KEY"; NULL: none. */
const char *cli_what_if_get(const CliWhatIf *what_if, const char *key);

/* Whether "key=value key=value" changes anything: false when each is so already. */
bool cli_what_if_changes(const CliWhatIf *what_if, const char *changes);

/* That these will be asked for, of cli_what_if() on the trace's cluster (SIM_WANTED_ALL) or of
 * cli_what_if_fits(): from now on they are predicted, on several cores (cli/host/cores.h), and
 * handed out once each. What changes nothing is left out. */
void cli_what_if_expect(CliWhatIf *what_if, const char *const *changes, guint n, SimWanted wanted);

/* Plays the plan with "key=value network.key=value" changed ("": as it is), on another cluster
 * unless that is NULL. An error is a refusal: the settings do not go together, or the ranks have no
 * place. */
SimPrediction *cli_what_if(const CliWhatIf *what_if, const char *changes,
                           const ModelCluster *cluster, GError **error);

/* Plays the plan as it is, with no GPU slower and no link weaker than others of its kind (--slow,
 * --degrade). */
SimPrediction *cli_what_if_untroubled(const CliWhatIf *what_if, GError **error);

/* The same on the trace's cluster where that fits, or where no memory is given back (SIM_WANTED_FIT
 * or _CALM); else NULL. */
SimPrediction *cli_what_if_fits(const CliWhatIf *what_if, const char *changes, SimWanted wanted);

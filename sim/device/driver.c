#include "sim/device/driver.h"

void sim_driver_init(SimDriver *driver, SimHostClock *host, const ModelCluster *cluster,
                     uint64_t allocator_bytes) {
    *driver = (SimDriver){.host = host,
                          .cluster = cluster,
                          .segment_new_ns = sim_time_from_us(cluster->allocator_segment_new_us),
                          .segment_free_ns = sim_time_from_us(cluster->allocator_segment_free_us),
                          .allocator_bytes = allocator_bytes};
}

static MemoryEvent event_record(gpointer self, uint32_t lane) {
    SimHostClock *host = ((SimDriver *)self)->host;
    sim_host_let_pass(host);
    return sim_engine_record(host->engine, lane);
}

static bool event_query(gpointer self, MemoryEvent event) {
    SimHostClock *host = ((SimDriver *)self)->host;
    sim_host_let_pass(host);
    return sim_engine_passed(host->engine, (uint32_t)event);
}

static void event_sync(gpointer self, MemoryEvent event) {
    sim_host_wait_for(((SimDriver *)self)->host, (uint32_t)event);
}

static void stream_sync(gpointer self, uint32_t lane) {
    SimHostClock *host = ((SimDriver *)self)->host;
    sim_host_let_pass(host);
    sim_host_wait_for(host, sim_engine_record(host->engine, lane));
}

static SimTime at_rate(double bytes, double gb_per_s) {
    return gb_per_s > 0 ? sim_time_from_ns(bytes / gb_per_s) : 0;
}

/* A driver hands out memory that is clean before what was given back, which it wipes first. */
static SimTime to_map(SimDriver *driver, uint64_t bytes) {
    const ModelCluster *cluster = driver->cluster;
    double rate = cluster->allocator_segment_new_gb_per_s;
    double again = cluster->allocator_segment_again_gb_per_s;
    uint64_t clean = MIN(bytes, driver->allocator_bytes - driver->once_held_bytes);
    driver->once_held_bytes += clean;
    return at_rate((double)clean, rate) +
           at_rate((double)(bytes - clean), again > 0 ? again : rate);
}

/* cudaFree returns when the whole device is at rest. Mapping and unmapping pages is taken to cost
 * as much as making and freeing segments. */
static void acts(gpointer self, MemoryVirtualAct act, uint64_t bytes) {
    SimDriver *driver = self;
    const ModelCluster *cluster = driver->cluster;
    driver->n_acts++;
    switch (act) {
    case MEMORY_VIRTUAL_SEGMENT_NEW:
    case MEMORY_VIRTUAL_MAP:
        sim_host_spend(driver->host, driver->segment_new_ns + to_map(driver, bytes));
        return;
    case MEMORY_VIRTUAL_SEGMENT_FAILED:
    case MEMORY_VIRTUAL_MAP_FAILED:
        sim_host_spend(driver->host, driver->segment_new_ns);
        return;
    case MEMORY_VIRTUAL_SEGMENT_FREE:
        sim_host_wait_until_idle(driver->host);
        G_GNUC_FALLTHROUGH;
    case MEMORY_VIRTUAL_UNMAP:
        sim_host_spend(driver->host,
                       driver->segment_free_ns +
                           at_rate((double)bytes, cluster->allocator_segment_free_gb_per_s));
        return;
    }
}

const MemoryVirtualHooks sim_driver = {event_record, event_query, event_sync, stream_sync, acts};

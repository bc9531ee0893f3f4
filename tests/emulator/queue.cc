/* tests/emulator/queue.cc - streams and events, played as late as they allow.
 *
 * A stream is a queue of tasks. A task is work, or a wait for another stream to have done so many
 * tasks (which is all that an event says). Nothing runs when it is pushed. Whoever waits for a
 * stream runs that stream's tasks, and of others' only what it waits for.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <unistd.h>

#include <deque>
#include <set>
#include <vector>

#include "tests/emulator/emulator-private.h"

namespace {

struct Task {
    std::function<void()> work; /* empty: a wait */
    cudaStream_t producer;
    uint64_t producer_tasks;
};

} // namespace

struct EmulatorStream {
    std::deque<Task> tasks;
    uint64_t pushed, done;
    bool blocking; /* in order with the legacy stream */
    bool alive;
};

struct EmulatorEvent {
    bool keeps_time;
    cudaStream_t stream; /* NULL: never recorded */
    uint64_t tasks;      /* complete when the stream has done so many */
    double *ms;          /* when that was; shared with the task that writes it */
};

namespace {

constexpr long PAUSE_NS = 50 * 1000 * 1000; /* after which what nobody waits for is done */

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
std::vector<cudaStream_t> streams;                   /* the legacy stream first */
std::set<cudaEvent_t> events;                        /* that live */
uint64_t seed_now, random_state, entries, breaks_at; /* that entry; 0: none */
size_t tasks_done;
bool is_set_up, idler_runs, has_ended, is_forked;
thread_local bool in_host_function;

uint64_t random_number() {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

cudaStream_t legacy() {
    if (streams.empty()) {
        streams.push_back(new EmulatorStream{{}, 0, 0, true, true});
    }
    return streams[0];
}

cudaStream_t real(cudaStream_t stream) {
    return stream ? stream : legacy();
}

bool is_known(cudaStream_t stream) {
    for (cudaStream_t known : streams) {
        if (known == stream) {
            return stream->alive;
        }
    }
    return false;
}

bool can_run(cudaStream_t stream) {
    if (stream->tasks.empty()) {
        return false;
    }
    const Task &head = stream->tasks.front();
    return head.work || head.producer->done >= head.producer_tasks;
}

void run_head(cudaStream_t stream) {
    Task task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    if (task.work && emulator_state() == cudaSuccess) {
        task.work();
        tasks_done++;
    }
    stream->done++;
}

/* With a seed, others run ahead now and then. */
void let_others_run() {
    if (seed_now && random_number() % 2) {
        cudaStream_t stream = streams[random_number() % streams.size()];
        if (can_run(stream)) {
            run_head(stream);
        }
    }
}

void run_one_for(cudaStream_t stream) {
    while (!can_run(stream)) {
        stream = stream->tasks.front().producer;
    }
    run_head(stream);
}

void run_until(cudaStream_t stream, uint64_t tasks) {
    while (stream->done < tasks) {
        let_others_run();
        if (stream->done < tasks) {
            run_one_for(stream);
        }
    }
}

void push_wait(cudaStream_t stream, cudaStream_t producer, uint64_t tasks) {
    if (producer != stream && producer->done < tasks) {
        stream->tasks.push_back(Task{nullptr, producer, tasks});
        stream->pushed++;
    }
}

/* Work on the legacy stream waits for all blocking streams, and theirs for it. */
void keep_legacy_order(cudaStream_t stream) {
    if (!stream->blocking) {
        return;
    }
    for (cudaStream_t other : streams) {
        if (other != stream && other->blocking && (stream == legacy() || other == legacy())) {
            push_wait(stream, other, other->pushed);
        }
    }
}

bool is_pending() {
    for (cudaStream_t stream : streams) {
        if (!stream->tasks.empty()) {
            return true;
        }
    }
    return false;
}

void *idle(void *) {
    uint64_t seen = 0;
    for (;;) {
        struct timespec pause = {0, PAUSE_NS};
        nanosleep(&pause, nullptr);
        pthread_mutex_lock(&mutex);
        if (has_ended) {
            pthread_mutex_unlock(&mutex);
            return nullptr;
        }
        if (entries == seen && is_pending()) {
            emulator_finish_all();
        }
        seen = entries;
        pthread_mutex_unlock(&mutex);
    }
    return nullptr;
}

/* A child of fork() has no such thread, and what its parent began of CUDA is of no use to it. */
void be_child() {
    idler_runs = false;
    is_forked = true;
    pthread_mutex_init(&mutex, nullptr);
}

/* Before the process's static objects go, which the thread above looks at. */
void end_idler() {
    pthread_mutex_lock(&mutex);
    has_ended = true;
    pthread_mutex_unlock(&mutex);
}

EmulatorLive all_that_lives() {
    size_t alive = 0;
    for (cudaStream_t stream : streams) {
        alive += stream->alive && stream != streams[0];
    }
    return {alive, events.size(), emulator_device_allocations(), emulator_pinned_allocations(),
            emulator_blas_objects};
}

/* A process that has failed may leave what it likes. */
void look_for_leaks(int status, void *) {
    EmulatorLive live = all_that_lives();
    if (status == 0 && live.streams + live.events + live.device + live.pinned + live.blas) {
        fprintf(stderr,
                "emulator: not given back: %zu streams, %zu events, %zu allocations of the device, "
                "%zu of pinned memory, %zu objects of cuBLASLt\n",
                live.streams, live.events, live.device, live.pinned, live.blas);
        _exit(3);
    }
}

/* A stream that was destroyed, or never made, is no stream. */
cudaStream_t living(cudaStream_t stream) {
    stream = real(stream);
    if (!is_known(stream)) {
        emulator_fault("a stream that does not exist is used");
    }
    return stream;
}

/* An event that was destroyed, or never made, is no event. */
void must_live(cudaEvent_t event) {
    if (!events.count(event)) {
        emulator_fault("an event that does not exist is used");
    }
}

void set_up() {
    const char *text = getenv("FORESHARD_EMULATOR_SEED");
    is_set_up = true;
    seed_now = random_state = text ? strtoull(text, nullptr, 10) : 0;
    pthread_atfork(nullptr, nullptr, be_child);
    atexit(end_idler);
    if (getenv("FORESHARD_EMULATOR_LEAKS")) {
        on_exit(look_for_leaks, nullptr);
    }
}

double now_ms() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

} // namespace

void emulator_fault(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("emulator: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

void emulator_lock() {
    if (in_host_function) { /* cudaErrorNotPermitted, or a deadlock, says the documentation */
        emulator_fault("a host function of a stream calls CUDA");
    }
    if (is_forked) { /* cudaErrorInitializationError there */
        emulator_fault("CUDA was begun before fork() made this process");
    }
    pthread_mutex_lock(&mutex);
    if (++entries == breaks_at) {
        emulator_break();
    }
    if (!is_set_up) {
        set_up();
    }
}

void emulator_unlock() {
    pthread_mutex_unlock(&mutex);
}

uint64_t emulator_seed() {
    return seed_now;
}

void emulator_set_seed(uint64_t seed) {
    EmulatorEntry entry;
    seed_now = random_state = seed;
}

EmulatorLive emulator_live(void) {
    EmulatorEntry entry;
    return all_that_lives();
}

size_t emulator_tasks_done(void) {
    EmulatorEntry entry;
    return tasks_done;
}

size_t emulator_tasks() {
    return tasks_done;
}

void emulator_break_next() {
    breaks_at = entries + 1;
}

void emulator_push(cudaStream_t stream, std::function<void()> work) {
    stream = living(stream);
    if (!idler_runs) {
        pthread_t thread;
        idler_runs = true;
        pthread_create(&thread, nullptr, idle, nullptr);
        pthread_detach(thread);
    }
    keep_legacy_order(stream);
    stream->tasks.push_back(Task{std::move(work), nullptr, 0});
    stream->pushed++;
}

void emulator_finish(cudaStream_t stream) {
    stream = real(stream);
    run_until(stream, stream->pushed);
}

/* The youngest first: it likely takes what older ones make. */
void emulator_finish_all() {
    for (size_t i = streams.size(); i-- > 0;) {
        run_until(streams[i], streams[i]->pushed);
    }
}

/* ---- CUDA's own names ----------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int) {
    EmulatorEntry entry;
    if (emulator_state() != cudaSuccess) {
        return emulator_state();
    }
    legacy();
    *stream = new EmulatorStream{{}, 0, 0, !(flags & cudaStreamNonBlocking), true};
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) {
    return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

/* What it still has to do is done first; the record stays, since events may name it. */
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    EmulatorEntry entry;
    if (!stream || !is_known(stream)) {
        return emulator_error(cudaErrorInvalidResourceHandle);
    }
    emulator_finish(stream);
    stream->alive = false;
    return emulator_state();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
    EmulatorEntry entry;
    emulator_finish(living(stream));
    return emulator_state();
}

/* The runtime keeps this answer as it keeps errors: whoever asks for the last one finds it. */
static cudaError_t not_ready() {
    return emulator_state() == cudaSuccess ? emulator_error(cudaErrorNotReady) : emulator_state();
}

/* A question lets one needed task be done, so that asking on and on ends. */
cudaError_t cudaStreamQuery(cudaStream_t stream) {
    EmulatorEntry entry;
    stream = living(stream);
    if (stream->tasks.empty()) {
        return emulator_state();
    }
    run_one_for(stream);
    return not_ready();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
    EmulatorEntry entry;
    if (!event) {
        return emulator_error(cudaErrorInvalidResourceHandle);
    }
    must_live(event);
    if (event->stream) {
        push_wait(living(stream), event->stream, event->tasks);
    }
    return emulator_state();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data) {
    EmulatorEntry entry;
    emulator_push(stream, [=] {
        in_host_function = true;
        function(data);
        in_host_function = false;
    });
    return emulator_state();
}

cudaError_t cudaDeviceSynchronize(void) {
    EmulatorEntry entry;
    emulator_finish_all();
    return emulator_state();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags) {
    EmulatorEntry entry;
    if (emulator_state() != cudaSuccess) {
        return emulator_state();
    }
    *event = new EmulatorEvent{!(flags & cudaEventDisableTiming), nullptr, 0, nullptr};
    events.insert(*event);
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

static void forget_time(cudaEvent_t event) {
    if (event->ms && event->stream->done >= event->tasks) {
        delete event->ms; /* else its task still writes there */
    }
    event->ms = nullptr;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    EmulatorEntry entry;
    if (!event) {
        return emulator_error(cudaErrorInvalidResourceHandle);
    }
    must_live(event);
    forget_time(event);
    events.erase(event);
    delete event;
    return emulator_state();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    EmulatorEntry entry;
    if (!event) {
        return emulator_error(cudaErrorInvalidResourceHandle);
    }
    must_live(event);
    forget_time(event);
    double *ms = event->ms = new double(0);
    emulator_push(stream, [ms] {
        *ms = now_ms();
        tasks_done--; /* a record is no work */
    });
    event->stream = real(stream);
    event->tasks = event->stream->pushed;
    return emulator_state();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
    EmulatorEntry entry;
    must_live(event);
    if (!event->stream || event->stream->done >= event->tasks) {
        return emulator_state();
    }
    run_one_for(event->stream);
    return not_ready();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
    EmulatorEntry entry;
    must_live(event);
    if (event->stream) {
        run_until(event->stream, event->tasks);
    }
    return emulator_state();
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
    EmulatorEntry entry;
    if (emulator_state() != cudaSuccess) {
        return emulator_state();
    }
    must_live(start);
    must_live(end);
    if (!start->ms || !end->ms || !start->keeps_time || !end->keeps_time) {
        return emulator_error(cudaErrorInvalidResourceHandle);
    }
    if (start->stream->done < start->tasks || end->stream->done < end->tasks) {
        return emulator_error(cudaErrorNotReady);
    }
    *ms = (float)(*end->ms - *start->ms);
    return cudaSuccess;
}

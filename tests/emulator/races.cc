/* tests/emulator/races.cc - what kernels do to memory, access by access.
 *
 * Kernels that are compiled with -fsanitize=thread call one of these functions at each load and
 * store. That option's own library is not linked: it knows threads of the host, and what is judged
 * here are threads of a block and blocks of a grid. Two of them race when both touch a byte, at
 * least one to write, and nothing orders them: threads of a block are ordered by a barrier of the
 * block, blocks of a grid by nothing, whatever the order they happen to run in here. (Exchanges of
 * a warp order no memory, says CUDA's programming guide; no kernel counts on __syncwarp() or
 * __threadfence(), so neither is known here.) Two atomic accesses do not race; and a block that has
 * found in an atomic that another one was there before it comes after that one's atomics.
 *
 * What lies outside an allocation's bytes, if only by one and if only read, is told too, and what
 * a kernel writes to the host's memory. A kernel that does any of this ends the program.
 *
 * Each 16 bytes have a record of who wrote them and who read them, in this launch (of shared
 * memory: in this block). Where fewer are touched at once, 64 bytes at a time (a page) get a record
 * for each 4 or for each byte. Pages are made when they are first touched; what they know ends with
 * the launch.
 */
#include <cuda_runtime.h>
#include <stdio.h>

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "tests/emulator/emulator-private.h"

namespace {

constexpr uintptr_t PAGE = 64; /* bytes */
constexpr unsigned COARSEST = 4, FINER = 2, FINEST = 0;
constexpr size_t RECENT = 1024, MOST_PAGES = 1 << 18;

/* Who touched some bytes last, and whether others have too; all zeros: nobody. */
struct Touch {
    uint64_t block : 32, epoch : 16, thread : 11;
    uint64_t is_any : 1, is_atomic : 1, by_threads : 1, by_blocks : 1; /* by several of them */
};

struct Page {
    uint64_t launch = 0, block_run = 0; /* of which the records are */
    EmulatorSpan span = {};
    unsigned unit = COARSEST; /* a record is of 1 << unit bytes */
    std::vector<Touch> writes, reads;
};

std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
struct Recent {
    uintptr_t number;
    Page *page;
} recent[RECENT];
uint64_t pages_launch; /* since which they have been kept */

std::unordered_map<uintptr_t, std::set<uint32_t>> met; /* at an atomic: the blocks that came */
std::set<uint32_t> seen_before;                        /* by this block, at its atomics */
uint64_t met_launch, seen_block_run;

void forget(Page *page) {
    page->unit = COARSEST;
    for (auto *touches : {&page->writes, &page->reads}) {
        touches->assign(PAGE >> COARSEST, Touch());
    }
}

/* As many records as that takes, each what the larger one was. */
void refine(Page *page, unsigned unit) {
    for (auto *touches : {&page->writes, &page->reads}) {
        std::vector<Touch> finer(PAGE >> unit);
        for (uintptr_t i = 0; i < finer.size(); i++) {
            finer[i] = (*touches)[i << unit >> page->unit];
        }
        touches->swap(finer);
    }
    page->unit = unit;
}

Page *page_of(uintptr_t at) {
    uintptr_t number = at / PAGE;
    auto &near = recent[number % RECENT];
    if (!near.page || near.number != number) {
        if (pages.size() > MOST_PAGES && pages_launch != emulator_now.launch) {
            pages.clear();
            std::fill(recent, recent + RECENT, Recent{});
            pages_launch = emulator_now.launch;
        }
        std::unique_ptr<Page> &page = pages[number];
        if (!page) {
            page.reset(new Page());
        }
        near = {number, page.get()};
    }
    Page *page = near.page;
    bool is_shared = page->span.kind == EMULATOR_SHARED;
    if (page->launch != emulator_now.launch ||
        (is_shared && page->block_run != emulator_now.block_run)) {
        forget(page);
        page->launch = emulator_now.launch;
        page->block_run = emulator_now.block_run;
        page->span = emulator_span_of(number * PAGE, PAGE);
    }
    return page;
}

[[noreturn]] void tell(const char *how, uintptr_t at, const EmulatorSpan &span, const char *why) {
    emulator_fault("%s, block %u, thread %u %s byte %zd of %zu of %s memory at %#zx%s",
                   emulator_now.kernel, emulator_now.block, emulator_now.thread, how,
                   (ssize_t)(at - span.begin), (size_t)(span.end - span.begin),
                   span.kind == EMULATOR_SHARED ? "shared" : "the device's", (size_t)span.begin,
                   why);
}

/* Whether it came before what the running thread does now, or cannot matter. */
bool is_ordered(const Touch &touch, bool is_atomic) {
    if (!touch.is_any || (touch.is_atomic && is_atomic)) {
        return true;
    }
    if (touch.by_blocks || touch.block != emulator_now.block) {
        return touch.is_atomic && !touch.by_blocks && seen_block_run == emulator_now.block_run &&
               seen_before.count((uint32_t)touch.block);
    }
    return touch.epoch != emulator_now.epoch ||
           (!touch.by_threads && touch.thread == emulator_now.thread);
}

void leave(Touch *touch, bool is_atomic) {
    bool same_block = touch->is_any && touch->block == emulator_now.block;
    bool same_epoch = same_block && touch->epoch == emulator_now.epoch;
    bool follows = touch->is_atomic && is_atomic; /* and so comes after it and all before */
    bool by_blocks = touch->by_blocks || (touch->is_any && !same_block && !follows);
    bool by_threads = same_epoch && (touch->by_threads || touch->thread != emulator_now.thread);
    *touch = Touch{emulator_now.block, emulator_now.epoch, emulator_now.thread, true, is_atomic,
                   by_threads,         by_blocks};
}

enum How {
    READS,
    WRITES,
    CHANGES /* atomically */
};

const char *const names[] = {"reads", "writes", "changes"};

void touch_unit(uintptr_t at, Page *page, How how) {
    Touch *write = &page->writes[at % PAGE >> page->unit];
    Touch *read = &page->reads[at % PAGE >> page->unit];
    const EmulatorSpan &span = page->span;
    if (!is_ordered(*write, how == CHANGES)) {
        tell(names[how], at, span, ", which another thread writes, and nothing comes between");
    }
    if (how == READS) {
        leave(read, false);
        return;
    }
    if (!is_ordered(*read, false)) {
        tell(names[how], at, span, ", which another thread reads, and nothing comes between");
    }
    leave(write, how == CHANGES);
}

/* Of one page. */
void touch_part(uintptr_t at, uintptr_t end, Page *page, How how) {
    const EmulatorSpan &span = page->span;
    if (at < span.begin || end > span.end) {
        tell(names[how], at < span.begin ? at : std::max(at, span.end), span,
             ", which is outside of it");
    }
    unsigned unit = (at | end) % 16 == 0 ? COARSEST : (at | end) % 4 == 0 ? FINER : FINEST;
    if (unit < page->unit) {
        refine(page, unit);
    }
    for (; at < end; at += (uintptr_t)1 << page->unit) {
        touch_unit(at, page, how);
    }
}

void touch(const void *pointer, size_t bytes, How how) {
    uintptr_t at = (uintptr_t)pointer, end = at + bytes;
    if (!emulator_now.kernel || emulator_is_on_stack(at)) {
        return; /* the host's own code, in the same file, or what is the thread's own */
    }
    while (at < end) {
        Page *page = page_of(at);
        uintptr_t until = std::min(end, (at / PAGE + 1) * PAGE);
        if (page->span.kind == EMULATOR_HOST && how != READS) {
            emulator_fault("%s, block %u, thread %u writes to the host's memory at %#zx",
                           emulator_now.kernel, emulator_now.block, emulator_now.thread,
                           (size_t)at);
        }
        if (page->span.kind != EMULATOR_HOST) {
            touch_part(at, until, page, how);
        }
        at = until;
    }
}

} // namespace

static bool has_seen; /* code that was compiled so is in this program */

void emulator_atomic(const void *at, size_t bytes) {
    if (!has_seen || !emulator_now.kernel) {
        return;
    }
    if (met_launch != emulator_now.launch) {
        met.clear();
        met_launch = emulator_now.launch;
    }
    if (seen_block_run != emulator_now.block_run) {
        seen_before.clear();
        seen_block_run = emulator_now.block_run;
    }
    std::set<uint32_t> &blocks = met[(uintptr_t)at];
    seen_before.insert(blocks.begin(), blocks.end());
    blocks.insert(emulator_now.block);
    touch(at, bytes, CHANGES);
}

/* ---- what compilers call -------------------------------------------------------------------- */

#define ACCESS(name, bytes, how)                                                                   \
    extern "C" void __tsan_##name(void *at) {                                                      \
        touch(at, bytes, how);                                                                     \
    }
#define SIZES(name, how)                                                                           \
    ACCESS(name##1, 1, how)                                                                        \
    ACCESS(name##2, 2, how)                                                                        \
    ACCESS(name##4, 4, how)                                                                        \
    ACCESS(name##8, 8, how)                                                                        \
    ACCESS(name##16, 16, how)
SIZES(read, READS)
SIZES(write, WRITES)
SIZES(unaligned_read, READS)
SIZES(unaligned_write, WRITES)

extern "C" void __tsan_read_range(void *at, size_t bytes) {
    touch(at, bytes, READS);
}
extern "C" void __tsan_write_range(void *at, size_t bytes) {
    touch(at, bytes, WRITES);
}
extern "C" void __tsan_init() {
    has_seen = true;
}
extern "C" void __tsan_func_entry(void *) {
}
extern "C" void __tsan_func_exit() {
}
extern "C" void __tsan_vptr_update(void **, void *) {
}
extern "C" void __tsan_vptr_read(void **) {
}
/* Of the host's own code in these files: objects that are made once. */
extern "C" unsigned char __tsan_atomic8_load(const volatile unsigned char *at, int) {
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

/* tests/memory/plain-arena.h - the layout of memory/arena.h in its plainest form.
 *
 * Every tenant is held against every other that has its place: what the quick one is measured by.
 */
#pragma once

#include "memory/arena.h"

uint64_t plain_arena_layout(MemoryTenant *tenants, uint32_t n);
/* Lays a copy of them out plainly: the same size, and each at the same place. */
void plain_arena_assert_same(const MemoryTenant *tenants, uint32_t n, uint64_t size);

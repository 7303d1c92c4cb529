/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the unwinder knows of a program counter: its map, its unwind row, and whether it follows a call. Each
 * address space has a cache of these, in front of the maps and of the modules' tables.
 *
 * The cache is direct-mapped, and empty again whenever the maps change. It grows on demand: a thousand short
 * processes must not take much memory, and a compiler has ten thousand return addresses.
 *
 * The trail holds the frames' addresses of the last stack. The next stack mostly has the same outer frames at
 * the same addresses, and a dump that has just arrived is not in this CPU's cache: prefetching all of them at
 * once takes as long as waiting for one frame.
 */
#ifndef SAMPLER_UNWIND_PC_CACHE_H
#define SAMPLER_UNWIND_PC_CACHE_H

#include "sampler/unwind/cfi.h"
#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Is a call instruction in front of an address? */
enum pc_call {
	PC_CALL_UNKNOWN, /* not looked at yet */
	PC_CALL,
	PC_CALL_NONE,
	PC_CALL_UNREADABLE, /* code made at run time, or a file that could not be opened */
};

struct pc_info {
	uint64_t pc;
	const struct cfi_rule *rule; /* NULL: an empty entry of the cache */
	const struct map *map;       /* NULL if pc is in no map */
	uint32_t tag;                /* of unwind_remember() */
	uint8_t call;                /* enum pc_call, of pc + 1 */
};

enum { PC_CACHE_TRAIL = 256 };

struct pc_cache {
	uint32_t misses;
	uint32_t trail_count;
	uint64_t trail[PC_CACHE_TRAIL]; /* CFAs */
	struct pc_info entry[];
};

/* Where program counters are looked up: an address space and its cache. */
struct pc_space {
	struct maps *maps;
	uint16_t e_machine;
	struct pc_cache *cache; /* NULL if there is none yet */
	uint32_t entry_count;   /* of the cache, a power of two */
};

struct pc_space pc_space_of(struct maps *maps, uint16_t e_machine);

/* Fills in INFO from the maps and modules, without the cache. */
void pc_space_find(const struct pc_space *space, uint64_t pc, struct pc_info *info);

/* The same, and keeps it in the cache. Returns the cache's entry, or UNCACHED if it was not kept. */
struct pc_info *pc_space_find_and_keep(const struct pc_space *space, uint64_t pc, struct pc_info *uncached);

/* The cache's entry that PC belongs in. There must be a cache. */
static inline struct pc_info *pc_space_entry(const struct pc_space *space, uint64_t pc)
{
	/* 2^64 / golden ratio: spreads neighbours, and the upper bits depend on all lower ones. */
	return &space->cache->entry[(pc * UINT64_C(0x9e3779b97f4a7c15) >> 32) * space->entry_count >> 32];
}

/* What is known of PC. The result is in the cache, or is UNCACHED, and valid until the next look-up. */
static inline struct pc_info *pc_space_look_up(
    const struct pc_space *space, uint64_t pc, struct pc_info *uncached)
{
	struct pc_info *info = space->cache ? pc_space_entry(space, pc) : NULL;

	return info && info->rule && info->pc == pc ? info : pc_space_find_and_keep(space, pc, uncached);
}

/* Prefetches the frames of the trail from a dump. There must be a cache. */
void pc_cache_prefetch(
    const struct pc_cache *cache, uint64_t stack_address, const char *stack, size_t stack_bytes);

static inline bool pc_info_has_file(const struct pc_info *info)
{
	return info->map && info->map->has_bias;
}

/*
 * Is a call instruction in front of the byte behind INFO's pc? A direct call must lead to one of the maps.
 * INFO must have a map. Reads the map's file at the first time. The bytes are the file's: what the target has
 * patched in memory since is not seen.
 */
enum pc_call pc_info_call(const struct pc_space *space, struct pc_info *info);

/* Is INFO's pc in the start-up code of a file, which ends the chain of frame pointers with zero? */
bool pc_info_is_start_up(const struct pc_info *info);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/pc_cache.h"

#include "sampler/unwind/instructions.h"
#include "sampler/unwind/module.h"

enum {
	ENTRIES_FIRST = 256,
	ENTRIES_MAX = 16384,
	GROWTH = 4,
	/* A return address is below the CFA, saved registers are below that: mostly one cache line, sometimes
	 * two. x86-64: return address, rbp, rbx, r12-r15. */
	SAVED_BYTES = 7 * 8,
	LAST_SAVED = SAVED_BYTES - 8,
	/* Code behind a file's entry point that sets the frame pointer to zero for the outermost frame:
	 * _start, and the loader's way from there to the constructors. */
	ENTRY_BYTES = 256,
};

static size_t cache_bytes(uint32_t entry_count)
{
	return sizeof(struct pc_cache) + entry_count * sizeof(struct pc_info);
}

struct pc_space pc_space_of(struct maps *maps, uint16_t e_machine)
{
	const size_t bytes = maps_scratch_bytes(maps);
	struct pc_space space = {.maps = maps, .e_machine = e_machine};

	space.entry_count =
	    bytes ? (uint32_t)((bytes - sizeof(*space.cache)) / sizeof(struct pc_info)) : ENTRIES_FIRST;
	space.cache = maps_scratch(maps, cache_bytes(space.entry_count));
	if (!space.cache || space.cache->misses < 2 * space.entry_count || space.entry_count == ENTRIES_MAX)
		return space;
	space.entry_count *= GROWTH;
	space.cache = maps_scratch(maps, cache_bytes(space.entry_count));
	return space;
}

void pc_space_find(const struct pc_space *space, uint64_t pc, struct pc_info *info)
{
	info->pc = pc;
	info->rule = &cfi_no_rule;
	info->map = maps_module(space->maps, pc);
	info->tag = 0;
	info->call = PC_CALL_UNKNOWN;
	if (pc_info_has_file(info) && info->map->module->readable &&
	    info->map->module->file.e_machine == space->e_machine)
		info->rule =
		    module_rule_within(info->map->module, pc - info->map->bias, maps_cfi_work(space->maps));
	else if (info->map && !info->map->module)
		info->rule = maps_generated_rule(space->maps, info->map, pc, space->e_machine);
}

struct pc_info *pc_space_find_and_keep(const struct pc_space *space, uint64_t pc, struct pc_info *uncached)
{
	pc_space_find(space, pc, uncached);
	if (!space->cache)
		return uncached;
	space->cache->misses++;
	/* The next look-up may be able to read the row. */
	if (uncached->rule == &cfi_unread_rule)
		return uncached;
	struct pc_info *info = pc_space_entry(space, pc);
	*info = *uncached;
	return info;
}

void pc_cache_prefetch(
    const struct pc_cache *cache, uint64_t stack_address, const char *stack, size_t stack_bytes)
{
	for (uint32_t i = 0; i < cache->trail_count; i++) {
		uint64_t offset = cache->trail[i] - SAVED_BYTES - stack_address;

		if (offset >= stack_bytes || stack_bytes - offset < SAVED_BYTES)
			continue;
		__builtin_prefetch(stack + offset);
		__builtin_prefetch(stack + offset + LAST_SAVED);
	}
}

static bool has_readable_file(const struct map *map)
{
	return map->has_bias && map->module->readable;
}

static enum pc_call look_for_call(
    const struct pc_space *space, const struct map *map, uint64_t return_address)
{
	uint64_t length = return_address - map->start, target;
	uint8_t code[CALL_BYTES_MAX];
	size_t bytes = length < CALL_BYTES_MAX ? (size_t)length : CALL_BYTES_MAX;

	if (!has_readable_file(map) || map->module->file.e_machine != space->e_machine ||
	    module_read(map->module, code, bytes, map->pgoff + length - bytes) != 0)
		return PC_CALL_UNREADABLE;
	if (!call_ends_at(space->e_machine, code, bytes, return_address, &target))
		return PC_CALL_NONE;
	return !target || maps_find(space->maps, target) ? PC_CALL : PC_CALL_NONE;
}

enum pc_call pc_info_call(const struct pc_space *space, struct pc_info *info)
{
	if (info->call == PC_CALL_UNKNOWN)
		info->call = (uint8_t)look_for_call(space, info->map, info->pc + 1);
	return info->call;
}

bool pc_info_is_start_up(const struct pc_info *info)
{
	return has_readable_file(info->map) &&
	    info->pc - info->map->bias - info->map->module->file.entry < ENTRY_BYTES;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/return_address.h"

#include "sampler/unwind/call.h"
#include "sampler/unwind/module.h"

/* Code behind a file's entry point that sets the frame pointer to zero for the outermost frame: _start, and
 * the loader's way from there to the constructors. */
enum { ENTRY_BYTES = 256 };

static bool is_readable_file(const struct map *map)
{
	return map->has_bias && map->module->readable;
}

/* The bytes are the file's: what the target has patched in memory since is not seen. */
enum return_address_call return_address_look(
    const struct maps *maps, const struct map *map, uint64_t return_address, uint16_t e_machine)
{
	uint64_t length = return_address - map->start, target;
	uint8_t code[CALL_BYTES_MAX];
	size_t bytes = length < CALL_BYTES_MAX ? (size_t)length : CALL_BYTES_MAX;

	if (!is_readable_file(map) || map->module->file.e_machine != e_machine ||
	    module_read(map->module, code, bytes, map->pgoff + length - bytes) != 0)
		return AFTER_CALL_UNREADABLE;
	if (!call_ends_at(e_machine, code, bytes, return_address, &target))
		return AFTER_CALL_NO;
	return !target || maps_find(maps, target) ? AFTER_CALL : AFTER_CALL_NO;
}

bool return_address_is_start_up(const struct map *map, uint64_t pc)
{
	return is_readable_file(map) && pc - map->bias - map->module->file.entry < ENTRY_BYTES;
}

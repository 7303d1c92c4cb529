/* SPDX-License-Identifier: Apache-2.0 */
/* What the code around a return address says of a frame that was found by its frame pointer alone. */
#ifndef SAMPLER_UNWIND_RETURN_ADDRESS_H
#define SAMPLER_UNWIND_RETURN_ADDRESS_H

#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stdint.h>

/* Is a call instruction in front of an address? */
enum return_address_call {
	AFTER_CALL_UNKNOWN, /* not looked at yet */
	AFTER_CALL,
	AFTER_CALL_NO,
	AFTER_CALL_UNREADABLE, /* run-time generated code, or a file that could not be opened */
};

/* MAP holds the byte in front of RETURN_ADDRESS; the code is that of ELF machine E_MACHINE. A direct call
 * must lead to one of MAPS. Reads the map's file; the answer stays the same as long as the maps do. */
enum return_address_call return_address_look(
    const struct maps *maps, const struct map *map, uint64_t return_address, uint16_t e_machine);

/* Whether PC is in the start-up code of MAP's file, which ends the chain of frame pointers with zero. */
bool return_address_is_start_up(const struct map *map, uint64_t pc);

#endif

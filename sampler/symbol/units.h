/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which compilation unit does an address belong to?
 *
 * Asked of the units' own DW_AT_ranges, not of .debug_aranges: clang writes none, and libdw 0.188 knows no
 * other way. The addresses are known beforehand, so instead of an index over all units that is then searched,
 * every unit's ranges are searched for in the sorted addresses: no memory per unit.
 */
#ifndef SAMPLER_SYMBOL_UNITS_H
#define SAMPLER_SYMBOL_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "sampler/symbol/extents.h"

struct unit_facts {
	bool any;       /* at least one compilation unit */
	bool any_lines; /* at least one of them with a line table */
};

/*
 * vaddrs: n ascending addresses. Sets unit_offsets[i] to the offset of the unit's DIE, 0 when no unit claims
 * the address; of several units the one with the narrowest range. Returns 0 or -ENOMEM.
 */
int units_assign(Dwarf *dwarf, const struct extents *extents, const uint64_t *vaddrs, size_t n,
    Dwarf_Off *unit_offsets, struct unit_facts *facts);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which compilation unit does an address belong to?
 *
 * Reads the units' own DW_AT_ranges, not .debug_aranges, the only way in libdw 0.188: clang does not write
 * that section. All addresses are known in advance, so each range is looked up in the sorted addresses; this
 * needs no index over all units and no memory per unit.
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
 * the address; if several units do, the one with the narrowest range wins. Returns 0 or -ENOMEM.
 */
int units_assign(Dwarf *dwarf, const struct extents *extents, const uint64_t *vaddrs, size_t n,
    Dwarf_Off *unit_offsets, struct unit_facts *facts);

#endif

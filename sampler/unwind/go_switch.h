/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where Go calls C. Its runtime.asmcgocall leaves the goroutine's stack for the thread's own, which no row
 * says: Go's rows lead from there to no code. So the place is known by its instructions, those with which
 * asmcgocall goes back when the C function has returned.
 */
#ifndef SAMPLER_UNWIND_GO_SWITCH_H
#define SAMPLER_UNWIND_GO_SWITCH_H

#include "sampler/unwind/maps.h"

#include <stdbool.h>
#include <stdint.h>

struct go_switch {
	uint32_t depth_word; /* where asmcgocall has put the depth of the goroutine's stack, from sp on */
	bool has_record; /* a frame record is at the goroutine's stack pointer, not only a return address */
};

/* Whether a C function that returns to `pc` returns to asmcgocall, which a goroutine has called. On x86-64
 * only. */
bool go_switch_at(struct maps *maps, uint64_t pc, struct go_switch *found);

/* Whether a C function that returns to `pc` returns to asmcgocall, which was called on the thread's own
 * stack. The callers are there, but asmcgocall has aligned the stack pointer, so its row is wrong. */
bool go_realigned_at(struct maps *maps, uint64_t pc);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The outcomes of unwinding, in words. */
#include "sampler/unwind/unwind.h"

/* Only one copy: interned stacks compare markers by address. */
static const char guessed_marker[] = "[guessed]";

static const struct {
	const char *name, *marker;
} outcomes[UNWIND_COUNTS] = {
    [UNWIND_COMPLETE] = {"complete", NULL},
    [UNWIND_END_GUESSED] = {"end guessed", guessed_marker},
    [UNWIND_TRUNCATED] = {"truncated", "[truncated]"},
    [UNWIND_STACK_SWITCH] = {"stack switched", "[stack switched]"},
    [UNWIND_BAD_READ] = {"bad read", "[bad stack read]"},
    [UNWIND_BAD_ROW] = {"bad unwind row", "[bad unwind row]"},
    [UNWIND_LOOP] = {"loop", "[stack loop]"},
    [UNWIND_NO_MAP] = {"no mapping", "[unknown mapping]"},
    [UNWIND_NO_MODULE] = {"no module", "[unknown module]"},
    [UNWIND_NO_CFI] = {"no unwind rows", "[no unwind rows]"},
    [UNWIND_TOO_DEEP] = {"too deep", "[too deep]"},
    [UNWIND_UNREAD_CFI] = {"unwind rows not read", "[unwind rows not read]"},
    [UNWIND_NOT_PRESENT] = {"stack page not present", "[stack page not present]"},
    [UNWIND_GUESSED] = {"frames guessed", guessed_marker},
};

const char *unwind_outcome_name(enum unwind_outcome outcome)
{
	return (unsigned)outcome < UNWIND_COUNTS ? outcomes[outcome].name : "unknown";
}

const char *unwind_marker(enum unwind_outcome outcome)
{
	return (unsigned)outcome < UNWIND_COUNTS ? outcomes[outcome].marker : "[unknown]";
}

bool unwind_wants_maps(enum unwind_outcome outcome)
{
	return outcome == UNWIND_NO_MAP || outcome == UNWIND_NO_MODULE || outcome == UNWIND_NO_CFI;
}

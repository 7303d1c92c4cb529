/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/snapshot/allocator_frames.h"

#include "pprof/profile/drop_frames.h"

#include <regex.h>
#include <stddef.h>

/* RE2 and POSIX extended syntax agree on everything that the expression uses; pprof anchors it the same
 * way. */
bool allocator_frames_has(const char *function_name)
{
	static regex_t regex;

	static enum { UNKNOWN, GOOD, BAD } state;
	if (state == UNKNOWN)
		state =
		    regcomp(&regex, "^(" DROP_FRAMES_HEAP ")$", REG_EXTENDED | REG_NOSUB) == 0 ? GOOD : BAD;
	return state == GOOD && regexec(&regex, function_name, 0, NULL, 0) == 0;
}

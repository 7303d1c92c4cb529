/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/profile/anonymous.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pprof/table/index.h"

/* index_seed() differs from process to process; this must not. */
const char *anonymous_name(char kind, const char *name, char *buffer)
{
	if (!*name || *name == '[' || *name == '<')
		return name;
	snprintf(buffer, ANONYMOUS_BYTES, "%c_%016" PRIx64, kind,
	    index_mix_bytes(0x68656170746170, name, strlen(name)));
	return buffer;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/perf/backend.h"

#include <stddef.h>

const char *const backend_names[] = {"auto", "uprobe", "breakpoint", "copy", "walk", NULL};

const char *backend_name(enum backend backend)
{
	return backend_names[backend];
}

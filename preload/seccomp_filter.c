/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/seccomp_filter.h"

#include <stdatomic.h>

static _Atomic bool noted;

void seccomp_filter_note(void)
{
	atomic_store(&noted, true);
}

bool seccomp_filter_is_noted(void)
{
	return atomic_load(&noted);
}

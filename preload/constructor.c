/* SPDX-License-Identifier: Apache-2.0 */
/* The library's constructor: what must be done once, before the program's main, profiled or not. */
#include "preload/attach.h"
#include "preload/claim.h"
#include "preload/family.h"
#include "preload/goroutine.h"
#include "preload/next_symbol.h"
#include "preload/signal.h"

#include <errno.h>
#include <sys/auxv.h>

__attribute__((constructor(101))) static void construct(void)
{
	int saved = errno;

	next_symbol_resolve();
	signal_prepare();
	attach();
	attach_refuse();
	if (claim_state() == CLAIM_OPEN) /* of an offered region nothing is walked */
		goroutine_open();
	if (claim_state() == CLAIM_OPEN || claim_state() == CLAIM_OFFERED)
		family_redirect();
	next_symbol_hide_operators();
	next_symbol_protect(getauxval(AT_PAGESZ));
	errno = saved;
}

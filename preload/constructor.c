/* SPDX-License-Identifier: Apache-2.0 */
/* The library's constructor: what must be done once, before the program's main, profiled or not. */
#include "preload/attach.h"
#include "preload/claim.h"
#include "preload/family.h"
#include "preload/goroutine.h"
#include "preload/lookup.h"
#include "preload/next_symbol.h"
#include "preload/signal.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/auxv.h>

/* Go's linker exports this from every program and library that calls C. */
static bool has_go(void)
{
	struct lookup wish = {.name = "_cgo_topofstack"};

	if (lookup_before(wish.name))
		return true;
	lookup_next(&wish, 1);
	return wish.found;
}

__attribute__((constructor(101))) static void construct(void)
{
	int saved = errno;

	next_symbol_resolve();
	signal_prepare();
	attach();
	attach_refuse();
	if (claim_state() == CLAIM_OPEN && has_go()) /* of an offered region nothing is walked */
		goroutine_open();
	if (claim_state() == CLAIM_OPEN || claim_state() == CLAIM_OFFERED)
		family_redirect();
	next_symbol_hide_operators();
	next_symbol_protect(getauxval(AT_PAGESZ));
	errno = saved;
}

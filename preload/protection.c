/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/protection.h"

#include "preload/memory.h"

#include "proto/region.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/futex.h>

enum writable { WRITABLE_YES, WRITABLE_NO, WRITABLE_UNKNOWN };

/* The kernel combines the word with zero by an atomic "or", as it does with other words for the C library's
 * locks; and then wakes those who wait for `nobody` or for the word: no one. */
static enum writable ask(uintptr_t *word)
{
	static uint32_t nobody;
	const long operation = FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 0);

	if (syscall(SYS_futex, &nobody, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0L, word, operation) >= 0)
		return WRITABLE_YES;
	return errno == EFAULT ? WRITABLE_NO : WRITABLE_UNKNOWN;
}

bool protection_store(uintptr_t *word, uintptr_t value)
{
	void *page = (void *)((uintptr_t)word & ~(uintptr_t)(REGION_PAGE_BYTES - 1));
	enum writable writable = (uintptr_t)word % sizeof(*word) ? WRITABLE_UNKNOWN : ask(word);

	if (writable == WRITABLE_UNKNOWN)
		return false;
	if (writable == WRITABLE_NO && !memory_protect(page, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE))
		return false;
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	if (writable == WRITABLE_NO)
		memory_protect(page, REGION_PAGE_BYTES, PROT_READ);
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call frame information, compiled: for a program counter, the rule that computes the caller's frame.
 *
 *	vaddr ──hash──> struct cfi_rule { CFA = r7 + 48;  RA at CFA - 8;  r3 at CFA - 32, r6 at CFA - 16 }
 *
 * The rule for an address is computed once, by libdw (.eh_frame, else .debug_frame), and kept with the module
 * (module.h) for all processes that map the file. Rules repeat (a file of 100,000 rows has some hundred
 * different ones), so each rule is stored once: an address takes a slot of 16 bytes, a rule 64 bytes. A row
 * that does not fit the plain form (PLT stubs, __restore_rt, prologues that realign the stack) is kept as a
 * list of DWARF operations, see cfi_odd.h.
 *
 * The file is never mapped: a few pages around each look-up are copied. A mapped file that is truncated would
 * kill us with SIGBUS, and a file that changes while libdw reads it could pass a check and then hold other
 * bytes.
 */
#ifndef SAMPLER_UNWIND_CFI_H
#define SAMPLER_UNWIND_CFI_H

#include "sampler/linux/regs.h"
#include "sampler/unwind/module_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cfi;
struct cfi_odd;
struct throttle;

enum cfi_kind {
	CFI_NONE, /* nothing is known about this address */
	CFI_SIMPLE,
	CFI_ODD, /* see `odd`; the only other valid field is signal_frame */
	CFI_END, /* the outermost frame: the return address is undefined */
};

struct cfi_rule {
	uint8_t kind;
	uint8_t cfa_reg;
	bool signal_frame;   /* the caller was interrupted: its pc is exact */
	bool ra_in_register; /* return address in the arch's ra register, not in memory */
	/* bit i: arch->tracked[i] is at CFA + offset[i]; otherwise the register still has its value */
	uint16_t saved;
	/* if not 0, every saved word lies in [CFA - compact_bytes, CFA): one bounds check serves the row */
	uint16_t compact_bytes;
	int32_t cfa_offset;
	int32_t ra_offset; /* from the CFA */
	union {
		int32_t offset[REGS_TRACKED_MAX];
		const struct cfi_odd *odd;
	};
};

_Static_assert(sizeof(struct cfi_rule) <= 64, "a rule is one cache line");

extern const struct cfi_rule cfi_no_rule; /* CFI_NONE */
/* CFI_NONE for now: the file could not be read, or the row exceeded the limits below. The answer is not kept:
 * the next look-up tries again. */
extern const struct cfi_rule cfi_unread_rule;

/*
 * Memory of all files' rows. Files are hostile: a file may add rules only while it holds less than what is
 * left. So n greedy files end with 1/(n+1) of the memory each. libdw makes rules from a copy of the file; a
 * copy beyond this limit is given back.
 */
struct cfi_memory {
	uint64_t max_bytes, held_bytes;
};

/* Makes an empty table for one file; borrows MEMORY. NULL if out of memory or if the machine is unknown. */
struct cfi *cfi_new(uint16_t e_machine, struct cfi_memory *memory);
void cfi_free(struct cfi *cfi); /* NULL is allowed */

/* The rule for `vaddr` if it was looked up before, else NULL. Needs no file. */
const struct cfi_rule *cfi_known(const struct cfi *cfi, uint64_t vaddr);

/*
 * The work of looking up new rules, in units of a byte of call frame instructions (2 to 5 ns where it was
 * measured). A rule is looked up once for each address, and an address is a word of a stack that the process
 * wrote, in a file that it may have made: thousands of look-ups of a millisecond each would keep the sampler
 * of all processes from its other work. So each process has a throttle of its own. Rules that are known
 * already cost nothing.
 */
enum {
	CFI_WORK_BURST = 64 << 20, /* a compiler's first 100,000 rows take some 40 million */
	CFI_WORK_PER_US = 32,
};

/* May one more rule be looked up now? A look-up may leave a debt. */
bool cfi_work_allows(struct throttle *work);

/*
 * The rule for `vaddr` of `file`, which must be the same file each time. Never NULL, valid as long as `cfi`.
 * The first call reads the file's headers; the first call for an address reads some pages of the file.
 * `budget` pays for both (NULL: no limit).
 */
const struct cfi_rule *cfi_find(
    struct cfi *cfi, const struct module_file *file, uint64_t vaddr, struct throttle *budget);

/* Forgets the copied pages, so that the next look-up may be in another file with other addresses. */
void cfi_leave(struct cfi *cfi);

struct cfi_usage {
	size_t addresses, rules, odd;
	size_t own_bytes;    /* slots, rules and odd rules */
	size_t copied_bytes; /* pages of the file, and libdw's memory for them */
};

void cfi_measure(const struct cfi *cfi, struct cfi_usage *usage);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a recorded stack, as record.c writes it and tests/unit/stacks.c reads it. All little-endian. */
#ifndef TESTS_UNIT_STACKS_STACK_HEAD_H
#define TESTS_UNIT_STACKS_STACK_HEAD_H

#include <stdint.h>

#define STACK_MAGIC UINT64_C(0x31304b4341545348)

enum { STACK_TRUTH_MAX = 1024 };

struct stack_head {
	uint64_t magic;
	uint64_t pc;
	uint64_t known;
	uint64_t r[33]; /* by DWARF number */
	uint16_t e_machine;
	uint16_t cut; /* the stack goes on above the dump */
	uint32_t n_truth;
	uint32_t stack_bytes;
	uint32_t reserved;
	char name[24];
};

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A jitdump file that a target has written, of which the unwind rows are read: no byte outside is read, it
 * ends, and each address has a rule, the same each time.
 *
 * Input: a byte that chooses the machine and how much of the file is there at first, the file.
 */
#include "sampler/unwind/jit_rows.h"
#include "pprof/text/throttle.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { START = 0x1000, ADDRS = 64, STEP = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct throttle budget = {0};

	if (size < 1)
		return 0;
	const uint16_t e_machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	/* of just that size, so that a byte too many is seen */
	uint8_t *bytes = malloc(size - 1);
	memcpy(bytes, data + 1, size - 1);
	struct module_file file = {.fd = -1, .memory = bytes, .bytes = size - 1};
	struct jit_rows *rows = jit_rows_new(&file, e_machine);
	(void)jit_rows_read(rows, (size - 1) * (data[0] >> 1) / 128, &budget);
	(void)jit_rows_read(rows, size - 1, &budget);
	for (uint64_t i = 0; i < ADDRS; i++) {
		const uint64_t address = START + i * STEP;
		const struct cfi_rule *rule = jit_rows_rule(rows, address, e_machine, &budget);

		if (rule != &cfi_unread_rule && jit_rows_rule(rows, address, e_machine, &budget) != rule)
			abort();
	}
	jit_rows_unref(rows);
	free(bytes);
	return 0;
}

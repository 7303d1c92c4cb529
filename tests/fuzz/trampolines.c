/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a process in which copies of known code are looked for: no byte outside is read, and every
 * address with a rule has a call in front of it.
 *
 * Input: a byte that chooses the machine, the memory.
 */
#include "sampler/unwind/trampolines.h"
#include "sampler/unwind/instructions.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

enum { START = 0x10000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trampolines_run runs[TRAMPOLINES_RUNS_MAX];

	if (size < 1)
		return 0;
	const uint16_t e_machine = data[0] & 1 ? EM_AARCH64 : EM_X86_64;
	/* of just that size, so that a byte too many is seen */
	uint8_t *code = malloc(size - 1);
	memcpy(code, data + 1, size - 1);
	const size_t count = trampolines_find(e_machine, code, size - 1, runs);
	struct trampolines *t = trampolines_new(START, runs, count);
	for (uint64_t at = 0; at < size + 16; at++) {
		uint64_t target;

		if (trampolines_rule(t, START + at - 1, e_machine)->kind == CFI_NONE)
			continue;
		const size_t bytes = at < CALL_BYTES_MAX ? at : CALL_BYTES_MAX;
		if (at > size - 1 || !call_ends_at(e_machine, code + at - bytes, bytes, START + at, &target))
			abort();
	}
	trampolines_unref(t);
	free(code);
	return 0;
}

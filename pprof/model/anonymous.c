/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/model/anonymous.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "pprof/table/index.h"

/* Whole names: "<acme::Secret as Debug>::fmt" begins like one, and a program names "[anon:...]" itself. */
static bool is_marker(const char *name)
{
	static const char *const markers[] = {"[bad stack read]", "[bad unwind row]", "[frames cut]",
	    "[freed]", "[guessed]", "[hidden]", "[jit]", "[kernel]", "[lost samples]", "[lost stack]",
	    "[mmap]", "[no address left]", "[no size known]", "[no stack]", "[no thread known]",
	    "[no unwind rows]", "[no user stack]", "[unwind rows not read]", "[other]", "[stack loop]",
	    "[stack page not present]", "[stack switched]", "[too deep]", "[truncated]",
	    "[unknown: sampled before restart]", "[unknown mapping]", "[unknown module]", "[unknown]",
	    "<unknown>",
	    /* mappings that are no file */
	    "[anon:jit]", "[heap]", "[heaptap]", "[kernel.kallsyms]", "[special]", "[stack]", "[uprobes]",
	    "[vdso]", "[vsyscall]"};

	for (size_t i = 0; i < sizeof(markers) / sizeof(*markers); i++)
		if (strcmp(name, markers[i]) == 0)
			return true;
	return false;
}

/* index_seed() differs from process to process; this must not. */
const char *anonymous_name(char kind, const char *name, char *buffer)
{
	if (!*name || is_marker(name))
		return name;
	snprintf(buffer, ANONYMOUS_BYTES, "%c_%016" PRIx64, kind,
	    index_mix_bytes(0x68656170746170, name, strlen(name)));
	return buffer;
}

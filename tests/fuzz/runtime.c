/* SPDX-License-Identifier: Apache-2.0 */
/* An environment of any bytes, cut anywhere: what it turns off is found in bounds. */
#include "sampler/inject/runtime.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (enum runtime_kind kind = RUNTIME_NONE; kind < RUNTIME_KINDS; kind++)
		if (runtime_memory_is_off(kind, (const char *)data, size) &&
		    (size < 10 || (kind != RUNTIME_PYTHON && kind != RUNTIME_PHP)))
			abort();
	return 0;
}

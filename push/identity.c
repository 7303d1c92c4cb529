/* SPDX-License-Identifier: Apache-2.0 */
#include "push/identity.h"

#include "pprof/analysis/stack_key.h"
#include "pprof/model/origin.h"

#include <stdio.h>
#include <string.h>

static uint64_t mix_text(uint64_t hash, const char *text)
{
	return stack_key_mix(hash, text, strlen(text) + 1);
}

static uint64_t mix_number(uint64_t hash, int64_t number)
{
	return stack_key_mix(hash, &number, sizeof(number));
}

/* What origin_same_process() compares. */
uint64_t identity_of_process(const struct origin *origin)
{
	uint64_t key = mix_text(mix_number(1, origin->pid), origin->host);

	if (!origin_has_process(origin))
		return 0;
	key = mix_text(mix_text(key, origin->session), origin->event);
	key = *origin->session ? mix_number(key, origin->start_ns)
	                       : mix_text(mix_text(key, origin->program), origin->build_id);
	return key ? key : 1;
}

void identity_uuid(
    const struct origin *origin, const void *bytes, size_t length, char uuid[IDENTITY_UUID_BYTES])
{
	uint64_t process = identity_of_process(origin), high, low;

	if (!process)
		process = stack_key_mix(3, bytes, length);
	high = mix_number(mix_number(process, origin->time_ns), origin->kind);
	low = mix_number(high, (int64_t)process);
	snprintf(uuid, IDENTITY_UUID_BYTES, "%08x-%04x-8%03x-%04x-%012llx", (unsigned int)(high >> 32),
	    (unsigned int)(high >> 16 & 0xffff), (unsigned int)(high & 0xfff),
	    (unsigned int)(0x8000 | (low >> 48 & 0x3fff)), (unsigned long long)(low & 0xffffffffffff));
}

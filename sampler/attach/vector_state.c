/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/attach/vector_state.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum {
	LEGACY_BYTES = 512,
	HEADER_BYTES = 64,
	DESCRIPTION_AT = 464, /* in the legacy part; ptrace puts the enabled components there */
	TILE_DATA = 18,       /* enabled on request only: not in a frame of a thread that has not asked */
};
#define MAGIC_1 0x46505853u
#define MAGIC_2 0x46505845u

struct description {
	uint32_t magic, extended_bytes;
	uint64_t components;
	uint32_t area_bytes, reserved[7];
};

/* Where the last of the components ends, in the standard form of the area. */
static size_t area_bytes(uint64_t components)
{
	size_t end = LEGACY_BYTES + HEADER_BYTES;
#if defined(__x86_64__)
	for (uint32_t i = 2; i < 63; i++) {
		uint32_t bytes = 0, offset = 0, c, d;

		if (components >> i & 1 && __get_cpuid_count(0xd, i, &bytes, &offset, &c, &d) &&
		    (size_t)offset + bytes > end)
			end = (size_t)offset + bytes;
	}
#endif
	return end;
}

size_t vector_state_frame(const unsigned char *area, size_t bytes, unsigned char *frame)
{
	struct description description = {.magic = MAGIC_1};
	uint64_t enabled, used;
	const uint32_t mark = MAGIC_2;

	if (bytes < LEGACY_BYTES + HEADER_BYTES)
		return 0;
	memcpy(&enabled, area + DESCRIPTION_AT, sizeof(enabled));
	memcpy(&used, area + LEGACY_BYTES, sizeof(used));
	description.components = enabled & ~(UINT64_C(1) << TILE_DATA);
	size_t end = area_bytes(description.components);
	if (used >> TILE_DATA & 1 || end > bytes)
		return 0;
	description.area_bytes = (uint32_t)end;
	description.extended_bytes = (uint32_t)(end + sizeof(mark));
	memcpy(frame, area, end);
	memcpy(frame + DESCRIPTION_AT, &description, sizeof(description));
	memcpy(frame + end, &mark, sizeof(mark));
	return end + sizeof(mark);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/unwind/go_switch.h"

#include "sampler/unwind/module.h"

#include <elf.h>
#include <string.h>

enum { CODE_BYTES = 64, WORD_BYTES = 8 };

/* Takes the instruction if it is next. */
static bool take(const uint8_t **at, const void *instruction, size_t bytes)
{
	const bool is_next = memcmp(*at, instruction, bytes) == 0;

	*at += is_next ? bytes : 0;
	return is_next;
}

#define TAKE(at, instruction) take(at, instruction, sizeof(instruction) - 1)

/*
 * mov DEPTH+8(%rsp),%rdi; mov 8(%rdi),%rsi; sub DEPTH(%rsp),%rsi. In position-independent code there is
 * before that: mov VARIABLE(%rip),%rcx; the linker may have made mov $VARIABLE,%rcx of it.
 */
static bool take_way_back(const uint8_t **at, uint32_t *depth_bytes)
{
	enum { ADDRESS_BYTES = 4 };

	if (TAKE(at, "\x48\x8b\x0d") || TAKE(at, "\x48\xc7\xc1"))
		*at += ADDRESS_BYTES;
	if (!TAKE(at, "\x48\x8b\x7c\x24"))
		return false;
	const uint8_t goroutine_bytes = *(*at)++;
	if (!TAKE(at, "\x48\x8b\x77\x08"))
		return false;
	*depth_bytes = TAKE(at, "\x48\x2b\x34\x24") ? 0 : TAKE(at, "\x48\x2b\x74\x24") ? *(*at)++ : UINT8_MAX;
	return *depth_bytes % WORD_BYTES == 0 && *depth_bytes + WORD_BYTES == goroutine_bytes;
}

/* mov %eax,RESULT(%rsp); then pop %rbp, or not; ret */
static bool find_return(const uint8_t *at, const uint8_t *end, bool *has_record)
{
	for (; at + 7 <= end; at++)
		if (memcmp(at, "\x89\x44\x24", 3) == 0) {
			*has_record = at[4] == 0x5d;
			return at[4 + *has_record] == 0xc3;
		}
	return false;
}

static bool read_code(struct maps *maps, uint64_t pc, uint8_t code[CODE_BYTES])
{
	const struct map *map = maps_module(maps, pc);

	return map && map->has_bias && map->module->readable && map->module->file.e_machine == EM_X86_64 &&
	    module_read(map->module, code, CODE_BYTES, map->pgoff + (pc - map->start)) == 0;
}

bool go_switch_at(struct maps *maps, uint64_t pc, struct go_switch *found)
{
	uint8_t code[CODE_BYTES];
	const uint8_t *at = code;
	uint32_t depth_bytes;

	if (!read_code(maps, pc, code) || !take_way_back(&at, &depth_bytes) ||
	    !find_return(at, code + sizeof(code), &found->has_record))
		return false;
	found->depth_word = depth_bytes / WORD_BYTES;
	return true;
}

/* mov SAVED(%rsp),%rsi; mov %rsi,%rsp; and the end */
bool go_realigned_at(struct maps *maps, uint64_t pc)
{
	uint8_t code[CODE_BYTES];
	const uint8_t *at = code;
	bool has_record;

	if (!read_code(maps, pc, code))
		return false;
	if (!TAKE(&at, "\x48\x8b\x34\x24")) {
		if (!TAKE(&at, "\x48\x8b\x74\x24"))
			return false;
		at++;
	}
	return TAKE(&at, "\x48\x89\xf4") && find_return(at, code + sizeof(code), &has_record);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/protection.h"

#include "preload/raw_file.h"
#include "preload/memory.h"
#include "proto/region.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LIST_BYTES = 2 << 20, /* only what is used takes memory */
	TEXT_BYTES = 4096,
};

struct range {
	uintptr_t start, end;
	uint32_t allows; /* PROT_* */
};

struct protection {
	uint32_t count;
	struct range ranges[];
};

enum { RANGES = (LIST_BYTES - sizeof(struct protection)) / sizeof(struct range) };

/* Reads "start-end rwx", and passes over the rest of the line. */
struct parser {
	struct range range;
	uint32_t field; /* 0: start, 1: end, 2: what it allows, 3: the rest */
	uint32_t letter;
};

static void parse(struct parser *parser, struct protection *list, char c)
{
	uintptr_t *number = parser->field == 0 ? &parser->range.start : &parser->range.end;
	if (c == '\n') {
		if (list->count < RANGES)
			list->ranges[list->count++] = parser->range;
		*parser = (struct parser){.field = 0};
	} else if (parser->field < 2 && (c == '-' || c == ' ')) {
		parser->field++;
	} else if (parser->field < 2) {
		*number = *number << 4 | (uintptr_t)(c >= 'a' ? c - 'a' + 10 : c - '0');
	} else if (parser->field == 2) {
		parser->range.allows |= (uint32_t)(c == 'r' ? PROT_READ
		        : c == 'w'                          ? PROT_WRITE
		        : c == 'x'                          ? PROT_EXEC
		                                            : 0);
		parser->field += ++parser->letter == 3;
	}
}

struct protection *protection_read(void)
{
	char text[TEXT_BYTES];
	struct parser parser = {.field = 0};
	int fd = raw_file_open("/proc/self/maps", O_RDONLY);
	struct protection *list =
	    fd < 0 ? NULL : memory_map(LIST_BYTES, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	ssize_t got = -1;
	while (list && (got = raw_file_read(fd, text, sizeof(text))) > 0)
		for (ssize_t i = 0; i < got; i++)
			parse(&parser, list, text[i]);
	if (fd >= 0)
		raw_file_close(fd);
	if (got == 0)
		return list;
	protection_free(list);
	return NULL;
}

void protection_free(struct protection *protection)
{
	if (protection)
		memory_unmap(protection, LIST_BYTES);
}

static uint32_t allows(const struct protection *protection, uintptr_t address)
{
	uint32_t low = 0, high = protection->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (protection->ranges[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	bool inside = low < protection->count && protection->ranges[low].start <= address;
	return inside ? protection->ranges[low].allows : 0;
}

bool protection_store(const struct protection *protection, uintptr_t *word, uintptr_t value)
{
	uint32_t now = allows(protection, (uintptr_t)word);
	void *page = (void *)((uintptr_t)word & ~(uintptr_t)(REGION_PAGE_BYTES - 1));
	if (!(now & PROT_READ) || now & PROT_EXEC || (uintptr_t)word % sizeof(*word))
		return false;
	if (now & PROT_WRITE) {
		__atomic_store_n(word, value, __ATOMIC_RELEASE);
		return true;
	}
	if (mprotect(page, REGION_PAGE_BYTES, PROT_READ | PROT_WRITE) != 0)
		return false;
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	mprotect(page, REGION_PAGE_BYTES, PROT_READ);
	return true;
}

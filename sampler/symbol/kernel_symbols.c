/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/symbol/kernel_symbols.h"

#include "pprof/table/array.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 20 };

struct kernel_symbol {
	uint64_t address;
	const char *name;
};

struct kernel_symbols {
	char *text;                    /* contains the names; each is ended by a NUL */
	struct kernel_symbol *symbols; /* by address */
	size_t count, capacity;
};

static int by_address(const void *left, const void *right)
{
	const struct kernel_symbol *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* Parses one line, NUL-terminated; skips symbols that are not functions or whose address is hidden. False:
 * out of memory. */
static bool take_line(struct kernel_symbols *s, char *line)
{
	char *at;
	uint64_t address = strtoull(line, &at, 16);

	if (at == line || !address || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ' ||
	    !at[3])
		return true;
	char *name = at + 3;
	name[strcspn(name, "\t ")] = '\0';
	if (array_reserve(&s->symbols, &s->capacity, s->count + 1, sizeof(*s->symbols)) != 0)
		return false;
	s->symbols[s->count++] = (struct kernel_symbol){address, name};
	return true;
}

struct kernel_symbols *kernel_symbols_parse(char *text, size_t bytes)
{
	struct kernel_symbols *s = calloc(1, sizeof(*s));

	if (!s) {
		free(text);
		return NULL;
	}
	s->text = text;
	for (char *line = text, *end = text + bytes; line < end;) {
		char *next = memchr(line, '\n', (size_t)(end - line));

		next = next ? next : end;
		*next = '\0';
		if (!take_line(s, line)) {
			kernel_symbols_free(s);
			return NULL;
		}
		line = next + 1;
	}
	if (s->count)
		qsort(s->symbols, s->count, sizeof(*s->symbols), by_address);
	return s;
}

struct kernel_symbols *kernel_symbols_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0, capacity = 0;
	char *text = NULL;
	ssize_t got = 1;

	if (fd < 0)
		return NULL;
	while (got > 0 && length < KERNEL_SYMBOLS_BYTES_MAX) {
		if (array_reserve(&text, &capacity, length + READ_BYTES + 1, 1) != 0) {
			free(text);
			close(fd);
			return NULL;
		}
		got = read(fd, text + length, READ_BYTES);
		length += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	text[length] = '\0';
	return kernel_symbols_parse(text, length);
}

void kernel_symbols_free(struct kernel_symbols *s)
{
	if (!s)
		return;
	free(s->symbols);
	free(s->text);
	free(s);
}

size_t kernel_symbols_count(const struct kernel_symbols *s)
{
	return s->count;
}

const char *kernel_symbols_find(const struct kernel_symbols *s, uint64_t address)
{
	size_t after = ARRAY_UPPER_BOUND(s->symbols, s->count, address, address);

	return after ? s->symbols[after - 1].name : NULL;
}

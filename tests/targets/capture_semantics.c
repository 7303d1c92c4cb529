/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin -Wno-all */
/*
 * Says what every allocation function does at its edges: NULL or not, errno, alignment, contents. The output
 * must be the same with and without the library, whatever allocator is behind it.
 *
 *   capture_semantics ROUNDS
 */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static unsigned long rounds;
static FILE *out;

/* One line for each operation, in the first round; later rounds must agree with it. */
enum { LINES = 256, LINE_BYTES = 96 };
static char lines[LINES][LINE_BYTES];
static unsigned int line, round_number;

static void say(const char *what, const void *pointer, size_t alignment, int result, const char *more)
{
	int error = errno;
	char text[LINE_BYTES];

	snprintf(text, sizeof(text), "%s: %s%s, result %d, errno %d%s%s", what, pointer ? "block" : "NULL",
	    pointer && (uintptr_t)pointer % alignment ? ", misaligned" : "", result, error, *more ? ", " : "",
	    more);
	if (round_number == 0) {
		strcpy(lines[line], text);
		fprintf(out, "%s\n", text);
	} else if (strcmp(lines[line], text) != 0) {
		fprintf(out, "round %u: %s\n", round_number, text);
	}
	line++;
	errno = 1234;
}

static const char *usable(void *pointer, size_t size)
{
	int saved = errno;
	const char *text = malloc_usable_size(pointer) >= size ? "usable" : "too small";

	if (pointer)
		memset(pointer, 0x5a, malloc_usable_size(pointer));
	errno = saved;
	return text;
}

static const char *holds(const unsigned char *block, size_t bytes, int byte)
{
	for (size_t i = 0; block && i < bytes; i++)
		if (block[i] != byte)
			return "contents lost";
	return "contents kept";
}

static const size_t sizes[] = {0, 1, 15, 16, 100, 1000, 4096, 5000, 70000, 200000, 1 << 20};
static volatile size_t huge = SIZE_MAX, half = (size_t)PTRDIFF_MAX + 1, most = PTRDIFF_MAX,
                       large = (size_t)1 << 46;

static void plain(void)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		void *block = malloc(sizes[i]);

		say("malloc", block, 8, 0, usable(block, sizes[i]));
		free(block);
		say("free", NULL, 1, 0, "");
		block = calloc(sizes[i] / 5 + 1, 5);
		say("calloc", block, 8, 0, holds(block, sizes[i], 0));
		free(block);
	}
	free(NULL);
	say("free NULL", NULL, 1, 0, "");
	const size_t hopeless[] = {huge, half, most, large};
	for (size_t i = 0; i < 4; i++) {
		say("malloc hopeless", malloc(hopeless[i]), 1, 0, "");
		say("calloc hopeless", calloc(1, hopeless[i]), 1, 0, "");
		say("calloc overflow", calloc(hopeless[i], 1 << 20), 1, 0, "");
		say("realloc NULL hopeless", realloc(NULL, hopeless[i]), 1, 0, "");
		say("reallocarray overflow", reallocarray(NULL, hopeless[i], 1 << 20), 1, 0, "");
		say("memalign hopeless", memalign(64, hopeless[i]), 1, 0, "");
		say("aligned_alloc hopeless", aligned_alloc(64, hopeless[i] & ~(size_t)63), 1, 0, "");
	}
	say("calloc 0", calloc(0, huge) ? "" : NULL, 1, 0, "");
}

static void resized(void)
{
	unsigned char *block = realloc(NULL, 100);

	say("realloc NULL", block, 8, 0, "");
	memset(block, 1, 100);
	unsigned char *moved = realloc(block, huge - 4096);
	say("realloc fails", moved, 1, 0, holds(block, 100, 1));
	moved = realloc(block, large);
	say("realloc fails", moved, 1, 0, holds(block, 100, 1));
	moved = reallocarray(block, half, 4);
	say("reallocarray overflows", moved, 1, 0, holds(block, 100, 1));
	moved = reallocarray(block, large, 1);
	say("reallocarray fails", moved, 1, 0, holds(block, 100, 1));
	const size_t steps[] = {101, 200, 5000, 70000, 300000, 2 << 20, 200000, 1000, 100};
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		block = i % 2 ? realloc(block, steps[i]) : reallocarray(block, steps[i], 1);
		say("resize", block, 8, 0, holds(block, 100, 1));
		say("its size", NULL, 1, malloc_usable_size(block) >= steps[i], "");
	}
	block = realloc(block, 0);
	say("realloc to 0", block, 1, 0, "");
	free(block);
	errno = 1234;
	block = realloc(NULL, 0);
	say("realloc NULL to 0", block, 1, 0, "");
	free(block);
	errno = 1234;
	block = reallocarray(malloc(10), 0, 10);
	say("reallocarray to 0", block, 1, 0, "");
	free(block);
	errno = 1234;
}

static void aligned(void)
{
	void *untouched = &untouched, *block = untouched;
	const size_t bad[] = {0, 1, 3, 4, 7, 24, 1000};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int result = posix_memalign(&block, bad[i], 100);

		say("posix_memalign bad", NULL, 1, result, block == untouched ? "untouched" : "touched");
		block = untouched;
	}
	int result = posix_memalign(&block, 64, huge - 8192);
	say("posix_memalign hopeless", NULL, 1, result, "");
	for (size_t alignment = 8; alignment <= 1 << 20; alignment *= 4) {
		result = posix_memalign(&block, alignment, 100);
		say("posix_memalign", block, alignment, result, usable(block, 100));
		free(block);
		block = memalign(alignment, 1000);
		say("memalign", block, alignment, 0, usable(block, 1000));
		free(block);
		block = aligned_alloc(alignment, alignment * 2);
		say("aligned_alloc", block, alignment, 0, usable(block, alignment * 2));
		free(block);
	}
	block = valloc(100);
	say("valloc", block, 4096, 0, usable(block, 100));
	free(block);
	if (!getenv("NO_PVALLOC")) { /* jemalloc has none: libc's would come, and free would be jemalloc's */
		block = pvalloc(100);
		say("pvalloc", block, 4096, 0, usable(block, 4096));
		free(block);
	}
	say("usable of NULL", NULL, 1, (int)malloc_usable_size(NULL), "");
}

static void through_libc(void)
{
	char *text = strdup("a text that is long enough to be somewhere else");

	say("strdup", text, 8, 0, "");
	free(text);
	int length = asprintf(&text, "%d %s", 12345, "abc");
	say("asprintf", text, 8, length, text);
	free(text);
	text = realpath("/proc/self/..", NULL);
	say("realpath", text, 8, 0, text);
	free(text);
	errno = 1234;
}

int main(int argc, char *argv[])
{
	rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	/* A private stream with its own buffer: what we print must not depend on how it allocates. */
	static char buffer[1 << 16];
	out = fdopen(dup(1), "w");
	setvbuf(out, buffer, _IOFBF, sizeof(buffer));
	for (round_number = 0; round_number < rounds; round_number++) {
		line = 0;
		errno = 1234;
		plain();
		resized();
		aligned();
		through_libc();
	}
	fprintf(out, "done\n");
	fflush(out);
	_exit(0);
}

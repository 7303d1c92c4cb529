/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /proc/PID/smaps: of a real process, in pieces of any size, and broken in every way. */
#include "sampler/intake/smaps.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

struct seen {
	size_t count, shared;
	uint64_t rss_bytes, swap_bytes, length, names;
};

static void see(void *context, const struct smaps_mapping *mapping)
{
	struct seen *seen = context;

	seen->count++;
	seen->shared += mapping->shared;
	seen->rss_bytes += mapping->rss_bytes;
	seen->swap_bytes += mapping->swap_bytes;
	seen->length += mapping->range.len;
	for (const char *c = mapping->range.path; *c; c++)
		seen->names = seen->names * 31 + (unsigned char)*c;
}

static int parse(const char *text, size_t bytes, size_t piece, struct seen *seen)
{
	struct smaps *smaps = malloc(sizeof(*smaps));

	*seen = (struct seen){0};
	smaps_begin(smaps, see, seen);
	for (size_t at = 0; at < bytes; at += piece)
		smaps_feed(smaps, text + at, bytes - at < piece ? bytes - at : piece);
	int error = smaps_end(smaps);
	free(smaps);
	return error;
}

static int parse_text(const char *text, struct seen *seen)
{
	return parse(text, strlen(text), 64, seen);
}

static char *read_file(const char *path, size_t *bytes)
{
	char *text = calloc(1, 1 << 22);
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	*bytes = fread(text, 1, (1 << 22) - 1, file);
	fclose(file);
	return text;
}

static void a_real_process(void **unused)
{
	size_t bytes, lines = 0;
	uint64_t rss_kib = 0;
	struct seen whole, pieces;
	char *text = read_file("/proc/self/smaps", &bytes);

	assert_int_equal(0, parse(text, bytes, bytes, &whole));
	for (size_t piece = 1; piece < 5000; piece = piece * 3 + 1) {
		assert_int_equal(0, parse(text, bytes, piece, &pieces));
		assert_memory_equal(&whole, &pieces, sizeof(whole));
	}
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		unsigned long long kib;
		lines += strncmp(line, "VmFlags:", 8) == 0;
		if (sscanf(line, "Rss: %llu kB", &kib) == 1)
			rss_kib += kib;
	}
	assert_int_equal(lines, whole.count);
	assert_int_equal(rss_kib << 10, whole.rss_bytes);
	assert_true(whole.rss_bytes > 500000);
	free(text);
}

static void what_a_mapping_says(void **unused)
{
	struct seen seen;

	assert_int_equal(0, parse_text("", &seen));
	assert_int_equal(0, seen.count);
	assert_int_equal(0,
	    parse_text("1000-5000 rw-s 00000000 00:01 7   /SYSV00000000 (deleted)\n"
	               "Size: 16 kB\nRss:  8 kB\nSwap:   4 kB\nSwapPss: 99 kB\nVmFlags: rd wr\n"
	               "5000-6000 rw-p 00000000 00:00 0\nRss: 4 kB\n",
	        &seen));
	assert_int_equal(2, seen.count);
	assert_int_equal(1, seen.shared);
	assert_int_equal(12 << 10, seen.rss_bytes);
	assert_int_equal(4 << 10, seen.swap_bytes);
	assert_int_equal(0x5000, seen.length);
}

/* A path is what the target chose; the kernel escapes only newlines. */
static void names_are_no_lines(void **unused)
{
	struct seen seen;
	char text[8192 + 256];

	assert_int_equal(
	    0, parse_text("1000-5000 rw-p 0 00:01 7 /tmp/x\\012Rss:    16 kB\nRss: 4 kB\n", &seen));
	assert_int_equal(4096, seen.rss_bytes);
	assert_int_equal(0, parse_text("1000-5000 rw-p 0 00:01 7 Rss: 16 kB\nRss: 4 kB\n", &seen));
	assert_int_equal(4096, seen.rss_bytes);
	/* Longer than any line that is kept. */
	int at = sprintf(text, "1000-5000 rw-p 0 00:01 7 /");
	memset(text + at, 'x', 8192);
	strcpy(text + at + 8192, "\nRss: 8 kB\n6000-7000 rw-p 0 00:00 0\nRss: 4 kB\n");
	assert_int_equal(0, parse_text(text, &seen));
	assert_int_equal(2, seen.count);
	assert_int_equal(12 << 10, seen.rss_bytes);
}

static void what_is_no_such_text(void **unused)
{
	static const char *const broken[] = {
	    "Rss: 4 kB\n",                            /* of no mapping */
	    "1000-5000 rw-p 0 00:00 0\nRss: 4 kB",    /* cut off */
	    "1000-5000 rw-p 0 00:00 0\nRss: 20 kB\n", /* more than there is */
	    "1000-5000 rw-p 0 00:00 0\nRss: 99999999999999999999 kB\n",
	    "1000-5000 rw-p 0 00:00 0\nRss: -4 kB\n",
	    "1000-5000 rw-p 0 00:00 0\nRss: 4 MB\n",
	    "1000-5000 rw-p 0 00:00 0\nRss:\n",
	    "5000-1000 rw-p 0 00:00 0\n",
	    "1000-1000 rw-p 0 00:00 0\n",
	    "1000 rw-p 0 00:00 0\n",
	    "1000-5000 rw 0 00:00 0\n",
	    "1000-5000\n",
	    "1000-5000 rw-p 0 00:00 0\n4000-6000 rw-p 0 00:00 0\n", /* overlaps: counted twice */
	    "1000-5000 rw-p 0 00:00 0\n\n",
	    "1000-5000 rw-p 0 00:00 0\n\x01\xff\n",
	    "ELF",
	};
	struct seen seen;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		if (parse_text(broken[i], &seen) != -EPROTO)
			fail_msg("taken for good: %s", broken[i]);
	const char zeros[64] = {0};
	assert_int_equal(-EPROTO, parse(zeros, sizeof(zeros), 7, &seen));
	const char inner[] = "1000-5000 rw-p 0 00:00 0 /a\0b\nRss: 4 kB\n";
	assert_int_equal(0, parse(inner, sizeof(inner) - 1, 9, &seen));
	assert_int_equal(4096, seen.rss_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_real_process),
	    cmocka_unit_test(what_a_mapping_says),
	    cmocka_unit_test(names_are_no_lines),
	    cmocka_unit_test(what_is_no_such_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

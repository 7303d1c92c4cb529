/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server of a kind, with known truth: leaky REQUESTS BYTES. Each request keeps a block of BYTES for ever in
 * remember_request(), works in blocks that it frees in handle_request(), and a table is made once by
 * load_table(). What forget_me() keeps is suppressed by the program itself, in the way of LeakSanitizer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void)
{
	return "# known\nleak:forget_me\n";
}

static void *volatile kept;

__attribute__((noinline)) static void remember_request(size_t bytes)
{
	void **block = malloc(bytes < sizeof(void *) ? sizeof(void *) : bytes);

	*block = kept;
	kept = block;
}

__attribute__((noinline)) static void handle_request(size_t bytes)
{
	char *volatile work = malloc(4096);

	memset(work, 1, 4096);
	remember_request(bytes);
	free(work);
}

__attribute__((noinline)) static void *load_table(size_t bytes)
{
	char *table = malloc(bytes);

	memset(table, 2, bytes);
	return table;
}

__attribute__((noinline)) static void *forget_me(void)
{
	char *block = malloc(300000);

	block[0] = 3; /* or the call would be the last thing done, and no frame of ours be there */
	return block;
}

static void *volatile table, *volatile forgotten;

int main(int argc, char *argv[])
{
	long requests = argc > 1 ? atol(argv[1]) : 1000, bytes = argc > 2 ? atol(argv[2]) : 64;

	table = load_table(1 << 20);
	forgotten = forget_me();
	for (long i = 0; i < requests; i++)
		handle_request((size_t)bytes);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/books/books.h"

#include <errno.h>

int books_add_run(struct books *books, struct program_run *run)
{
	if (table_add(&books->runs, run->region->key, run) != 0)
		return -ENOMEM;
	run->books = books;
	run->memory = books->memory;
	return 0;
}

void books_remove_run(struct program_run *run)
{
	table_remove(&run->books->runs, run->region->key, run);
}

struct program_run *books_run_of_key(const struct books *books, uint64_t key)
{
	size_t cursor = 0;

	return table_next(&books->runs, key, &cursor);
}

struct program_run *books_run_of_region(const struct books *books, uint64_t ino)
{
	books_each_run(run, books) if (run->region->ino == ino) return run;
	return NULL;
}

void books_fini(struct books *books)
{
	table_fini(&books->runs);
	table_fini(&books->processes);
}

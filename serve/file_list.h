/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile files that the server was given, and those of samplers: found and opened by the broker, read by
 * the web process.
 *
 * A file has a number, made of its path alone: it is the same after a restart, so that the address of a page
 * stays good. As text, a line each ended by NUL: "NUMBER BYTES MTIME_NS PATH".
 */
#ifndef SERVE_FILE_LIST_H
#define SERVE_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILE_LIST_MAX = 20000, FILE_LIST_DEPTH = 4 /* folders below a given one: a store has two */ };

struct file_list_item {
	uint64_t number, bytes;
	int64_t mtime_ns;
	const char *path;       /* in `text`, or owned by the finder */
	uint64_t device, inode; /* of the finder's: the file, whatever has its name now */
	bool is_given;          /* of the finder's: by an operand */
};

struct file_list {
	struct file_list_item *items; /* by number */
	size_t count, room;
	char *text; /* file_list_parse: all paths are in here */
};

/* A folder in which a sampler writes. */
struct file_list_store {
	const char *path;
	unsigned int depth; /* so many folders below it */
	int64_t since_ns;   /* what is older is not looked at */
};

/* For the broker: looks through files and folders (NULL-terminated), and those of samplers. Of a folder only
 * what is called as a profile is; no symbolic link is followed there, and nothing hidden is looked at. A file
 * that is found twice is in the list once. 0 or -ENOMEM; the list is the caller's, who calls file_list_fini
 * with it in both cases. */
int file_list_find(
    struct file_list *list, char *const *operands, const struct file_list_store *stores, size_t store_count);

/* As text, which the caller frees. NULL: no memory. */
char *file_list_print(const struct file_list *list, size_t *bytes);

/* For the web process: takes over `text`. 0, -EPROTO or -ENOMEM, in all cases file_list_fini is due. */
int file_list_parse(struct file_list *list, char *text, size_t bytes);
void file_list_fini(struct file_list *list);

/* NULL: there is no such file. */
const struct file_list_item *file_list_by_number(const struct file_list *list, uint64_t number);

#endif

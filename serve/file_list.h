/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile files that the server was given, and those of samplers. The broker finds and opens them, the
 * web process reads them.
 *
 * The number of a file is made of its path alone: it is the same after a restart, so that links into the page
 * stay good. As text, the list has a line for each file, ended by NUL: "NUMBER BYTES MTIME_NS PATH".
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
	const char *path;       /* in `text`; or owned, after file_list_find() */
	uint64_t device, inode; /* after file_list_find(): the file, even if another file has its name now */
	bool is_given;          /* after file_list_find(): an operand names it, or its folder */
};

struct file_list {
	struct file_list_item *items; /* by number */
	size_t count, room;
	char *text; /* after file_list_parse(): has all paths */
};

/* A folder in which a sampler writes. */
struct file_list_store {
	const char *path;
	unsigned int depth; /* how many levels of folders below it are looked into */
	int64_t since_ns;   /* older files are left out */
};

/* For the broker: looks through files and folders (NULL-terminated), and the folders of samplers. In a folder
 * it takes files that are named like profiles; it follows no symbolic link, and leaves out hidden names. A
 * file that is found twice is in the list once. 0 or -ENOMEM; the caller calls file_list_fini() in both
 * cases. */
int file_list_find(
    struct file_list *list, char *const *operands, const struct file_list_store *stores, size_t store_count);

/* The list as text, which the caller frees. NULL: no memory. */
char *file_list_print(const struct file_list *list, size_t *bytes);

/* For the web process: takes over `text`. 0, -EPROTO or -ENOMEM; the caller calls file_list_fini() in all
 * cases. */
int file_list_parse(struct file_list *list, char *text, size_t bytes);
void file_list_fini(struct file_list *list);

/* NULL: there is no such file. */
const struct file_list_item *file_list_by_number(const struct file_list *list, uint64_t number);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books: all images and processes that are recorded, and the one way to go through them.
 *
 *   books_each_image (image, books)
 *           statement;
 *
 * The statement may add images or processes, which are not visited, and may remove its own (target/table.h).
 */
#ifndef SAMPLER_HEAP_BOOKS_H
#define SAMPLER_HEAP_BOOKS_H

#include "sampler/heap/process.h"
#include "sampler/target/table.h"

struct books {
	struct table images;         /* by their region's key */
	struct table processes;      /* by pid; image.c adds and removes them */
	struct memory_bound *memory; /* of all processes; borrowed, NULL: no bound */
};

#define books_each_image(image, books)     table_each (struct image, image, &(books)->images)
#define books_each_process(process, books) table_each (struct process, process, &(books)->processes)

/* Returns 0 or -ENOMEM. */
int books_add_image(struct books *books, struct image *image);

/* The caller then passes the image to image_free(). */
void books_remove_image(struct image *image);

/* The image whose region has this key, or this inode number; NULL if there is none. */
struct image *books_image_of_key(const struct books *books, uint64_t key);
struct image *books_image_of_region(const struct books *books, uint64_t ino);

/* Every image must be removed before. */
void books_fini(struct books *books);

#endif

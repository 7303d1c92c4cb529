/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/books.h"

#include <errno.h>

int books_add_image(struct books *books, struct image *image)
{
	if (table_add(&books->images, image->region->key, image) != 0)
		return -ENOMEM;
	image->books = books;
	image->memory = books->memory;
	return 0;
}

void books_remove_image(struct image *image)
{
	table_remove(&image->books->images, image->region->key, image);
}

struct image *books_image_of_key(const struct books *books, uint64_t key)
{
	size_t cursor = 0;

	return table_next(&books->images, key, &cursor);
}

struct image *books_image_of_region(const struct books *books, uint64_t ino)
{
	books_each_image (image, books)
		if (image->region->ino == ino)
			return image;
	return NULL;
}

void books_fini(struct books *books)
{
	table_fini(&books->images);
	table_fini(&books->processes);
}

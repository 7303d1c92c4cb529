/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/heap/free_log.h"

enum { PATIENCE_NS = 100 * 1000000 }; /* wait for an entry whose writer was interrupted or has died */

void free_log_note(struct image *image)
{
	uint64_t head = atomic_load_explicit(&region_header(image->region)->frees_head, memory_order_acquire);

	if (head < image->frees.seen) /* only a hostile target goes back */
		image->frees.seen = head;
	if (head - image->frees.seen > REGION_FREES) {
		image->frees.lost += head - REGION_FREES - image->frees.seen;
		image->frees.seen = head - REGION_FREES;
	}
	image->frees.noted = head;
}

static void enter(struct image *image, const struct free_copy *gone)
{
	struct process *process = gone->place < REGION_PLACES ? image->places.at[gone->place] : NULL;

	if (process && !heap_freed(process->heap, gone))
		process->counters.frees_unknown++;
}

size_t free_log_drain(struct image *image, uint64_t now_ns)
{
	size_t count = 0;

	while (image->frees.seen < image->frees.noted) {
		struct free_copy gone;
		bool read = region_read_free(image->region, image->frees.seen, &gone);

		/* Reads the head only if needed: each free in the target writes it, so its cache line moves
		 * to us and back. */
		if (!read &&
		    atomic_load(&region_header(image->region)->frees_head) - image->frees.seen <=
		        REGION_FREES / 2) {
			if (!image->frees.stuck_ns)
				image->frees.stuck_ns = now_ns;
			if (now_ns - image->frees.stuck_ns < PATIENCE_NS)
				break;
		}
		image->frees.stuck_ns = 0;
		image->frees.seen++;
		if (read)
			enter(image, &gone);
		else
			image->frees.lost++;
		count += read;
	}
	return count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_offered: a program that carries the library, and is its own sampler: it turns its region on when a
 * thread of it runs already, and looks how much was copied of that thread's stack.
 *
 * Says `whole`, `a part` or `nothing`.
 */
#include "proto/buffer.h"
#include "tests/targets/own_region.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/syscall.h>

static sem_t running, on;

/* The interval that is under way was drawn with the offer's period. */
__attribute__((noinline)) static void allocate(void)
{
	for (int i = 0; i < 20; i++) {
		void *block = malloc(4 << 20);

		__asm__ volatile("" : "+r"(block) : : "memory");
		free(block);
	}
}

__attribute__((noinline)) static void deep(int frames)
{
	volatile char frame[4096];

	frame[0] = 1;
	if (frames)
		deep(frames - 1);
	else
		allocate();
	frame[1] = frame[0];
}

static void *work(void *tid)
{
	*(uint32_t *)tid = (uint32_t)syscall(SYS_gettid);
	free(malloc(100));
	sem_post(&running);
	sem_wait(&on);
	deep(10);
	return NULL;
}

/* Of the copied stacks of a thread; -1: there is none. */
static int content_of(const struct region_header *header, uint32_t tid)
{
	const unsigned char *at =
	    (const unsigned char *)header + header->offsets.buffers + BUFFER_BITMAPS_BYTES;

	for (uint32_t c = 0; c < BUFFER_CLASSES; c++)
		for (uint32_t i = 0; i < buffer_count(c, header->large_buffers, false);
		     i++, at += buffer_class[c].bytes) {
			const struct region_buffer *buffer = (const void *)at;

			if ((buffer->word & BUFFER_STATE_MASK) == BUFFER_FULL && buffer->sample.tid == tid)
				return buffer->content;
		}
	return -1;
}

int main(void)
{
	pthread_t thread;
	uint32_t tid = 0;
	struct region_header *header = own_region();

	sem_init(&running, 0, 0);
	sem_init(&on, 0, 0);
	if (!header || header->state != REGION_OFFERED || pthread_create(&thread, NULL, work, &tid) != 0)
		return 2;
	sem_wait(&running);
	header->mode = REGION_MODE_COPY;
	sem_post(&on);
	pthread_join(thread, NULL);
	const int content = content_of(header, tid);
	puts(content == BUFFER_WHOLE_STACK ? "whole" : content == BUFFER_STACK ? "a part" : "nothing");
	return 0;
}

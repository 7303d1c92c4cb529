/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_offer STEP...: offers regions that no library would make, for tests of the daemon.
 *
 *     make N       N regions as the library makes them
 *     size BYTES   one of that size, with a good header
 *     abi N        one of another version
 *     random       one with a good header and nonsense in every other page that is looked at
 *     header       one whose header says nonsense
 *     half         one that is only begun; `complete` makes them whole
 *     file FOLDER  a file that is called as a region is, and lies on no file system that others can reach
 *     shrink       one that is truncated again and again while it is looked at
 *     flip SECONDS changes words of all regions that were made, at random
 *     ready        says in each that processes have taken places
 *     touch FILE, await FILE
 */
#define _GNU_SOURCE
#include "proto/region.h"
#include "proto/region_layout.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

enum { REGIONS = 20000 };

static unsigned char *regions[REGIONS];
static size_t count, bytes;
static uint64_t state = 1;

static uint64_t draw(void)
{
	state += 0x9e3779b97f4a7c15ull;
	uint64_t z = (state ^ state >> 30) * 0xbf58476d1ce4e5b9ull;
	return (z ^ z >> 27) * 0x94d049bb133111ebull;
}

static void map_buffers(unsigned char *region, const struct region_offsets *offsets)
{
	const uint64_t size = region_buffers_bytes(offsets);
	const int fd = memfd_create("heaptap-buffers", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)size) != 0 ||
	    mmap(region + offsets->buffers, size, PROT_READ | PROT_WRITE,
	        MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    close(fd) != 0)
		abort();
}

static struct region_header *make(size_t size, int *fd)
{
	struct region_offsets offsets;

	region_lay_out(&offsets, REGION_OFFER_SEGMENTS, REGION_OFFER_LARGE_BUFFERS);
	bytes = offsets.end;
	size = size ? size : bytes;
	*fd = memfd_create("heaptap", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	if (*fd < 0 || ftruncate(*fd, (off_t)size) != 0)
		abort();
	void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
	if (start == MAP_FAILED || count == REGIONS)
		abort();
	struct region_header *header = start;
	if (size >= sizeof(*header)) {
		header->magic = REGION_MAGIC;
		header->abi = REGION_ABI;
		header->offsets = offsets;
		header->segments = REGION_OFFER_SEGMENTS;
		header->start_segments = REGION_START_SEGMENTS_LEAST;
		header->large_buffers = REGION_OFFER_LARGE_BUFFERS;
		header->offered = 1;
		header->period_bytes = REGION_OFFER_PERIOD_BYTES;
		header->state = REGION_OFFERED;
	}
	if (size == bytes) {
		map_buffers((unsigned char *)start, &offsets);
		regions[count++] = start;
	}
	return header;
}

static struct region_header *make_whole(void)
{
	int fd;
	struct region_header *header = make(0, &fd);

	close(fd);
	return header;
}

/* Every 1,021st word: the pages of places, owners, slots and buffers among them. */
static void fill_random(unsigned char *start)
{
	for (size_t at = REGION_PAGE_BYTES; at + 8 <= bytes; at += 8 * 1021) {
		uint64_t word = draw();

		memcpy(start + at, &word, sizeof(word));
	}
}

static void say_ready(struct region_header *header)
{
	unsigned char *start = (unsigned char *)header;
	struct region_place *places = (void *)(start + header->offsets.places);
	uint16_t *owners = (void *)(start + header->offsets.owners);

	for (uint32_t i = 0; i < REGION_PLACES; i++) {
		places[i].pid = i % 2 ? (uint32_t)draw() : (uint32_t)getpid();
		places[i].state = PLACE_READY;
		places[i].allocated.samples = draw();
		places[i].live.bytes_q8 = draw();
	}
	for (uint32_t i = 0; i < REGION_OFFER_SEGMENTS; i++)
		owners[i] = (uint16_t)(i % (REGION_PLACES + 9));
	header->places_claimed += REGION_PLACES;
	header->copied += 1;
	header->frees_head = draw();
	header->state = REGION_READY;
}

static void flip(long seconds)
{
	const time_t end = time(NULL) + seconds;
	static const size_t hot = 1 << 20; /* header, places, owners, the first buffers */

	while (time(NULL) < end)
		for (int i = 0; i < 10000 && count; i++) {
			unsigned char *start = regions[draw() % count];
			uint64_t word = draw() % 3 ? draw() : draw() % 300;

			memcpy(start + draw() % (hot / 8) * 8, &word, sizeof(word));
		}
}

static void shrink(void)
{
	int fd;

	make(0, &fd);
	for (int i = 0; i < 100000; i++)
		(void)!(ftruncate(fd, REGION_PAGE_BYTES) == 0 && ftruncate(fd, (off_t)bytes) == 0);
	close(fd);
}

/* A mount that is gone from its folder: the file's path ends at its root. */
static void map_file(const char *folder)
{
	char path[4096];

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", folder, "tmpfs", 0, NULL) != 0)
		abort();
	snprintf(path, sizeof(path), "%s/memfd:heaptap", folder);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, 1 << 20) != 0 ||
	    mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED ||
	    unlink(path) != 0 || close(fd) != 0 || umount2(folder, MNT_DETACH) != 0)
		abort();
}

static void await(const char *path)
{
	const struct timespec time = {0, 10000000};

	while (access(path, F_OK) != 0)
		nanosleep(&time, NULL);
}

int main(int argc, char *argv[])
{
	int fd;

	for (int i = 1; i < argc; i++) {
		const char *step = argv[i];

		if (strcmp(step, "make") == 0)
			for (long n = atol(argv[++i]); n > 0; n--)
				make_whole();
		else if (strcmp(step, "size") == 0)
			make((size_t)atol(argv[++i]), &fd);
		else if (strcmp(step, "abi") == 0)
			make_whole()->abi = (uint32_t)atol(argv[++i]);
		else if (strcmp(step, "random") == 0)
			fill_random((unsigned char *)make_whole());
		else if (strcmp(step, "header") == 0) {
			struct region_header *header = make_whole();

			header->offsets.segments = draw();
			header->segments = (uint32_t)draw();
		} else if (strcmp(step, "half") == 0) {
			struct region_header *header = make_whole();

			header->magic = 0;
			header->state = REGION_SPARE;
		} else if (strcmp(step, "complete") == 0)
			for (size_t r = 0; r < count; r++) {
				struct region_header *header = (struct region_header *)regions[r];

				header->magic = REGION_MAGIC;
				header->state = REGION_OFFERED;
			}
		else if (strcmp(step, "file") == 0)
			map_file(argv[++i]);
		else if (strcmp(step, "shrink") == 0)
			shrink();
		else if (strcmp(step, "flip") == 0)
			flip(atol(argv[++i]));
		else if (strcmp(step, "ready") == 0)
			for (size_t r = 0; r < count; r++)
				say_ready((struct region_header *)regions[r]);
		else if (strcmp(step, "touch") == 0)
			close(open(argv[++i], O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
		else if (strcmp(step, "await") == 0)
			await(argv[++i]);
		else
			abort();
	}
	return 0;
}

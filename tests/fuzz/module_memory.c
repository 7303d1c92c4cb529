/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process' memory, of which a file that is gone is put together: whatever is there, no more is read and
 * written than is allowed, and what comes of it is a file that is read as any other.
 *
 * Input: 2 bytes for the page of the code, the memory.
 */
#include "sampler/unwind/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { AREA_BYTES = 1 << 24, MOST = 1 << 20 };

struct memory {
	const uint8_t *bytes;
	uint64_t start, length;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_memory(void *context, void *to, size_t bytes, uint64_t address)
{
	const struct memory *m = context;

	if (address < m->start || address - m->start > m->length || bytes > m->length - (address - m->start))
		return -EIO;
	memcpy(to, m->bytes + (address - m->start), bytes);
	return 0;
}

static void read_file(int fd)
{
	char path[64];
	struct modules *store = modules_new(0);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	const struct module_request request = {.path = path};
	struct module *module = module_get(store, &request);
	for (uint64_t vaddr = 0x1000; vaddr < 0x1100; vaddr++)
		(void)module_rule(module, vaddr);
	module_unref(module);
	modules_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	/* of just that size, so that a byte too many is seen */
	uint8_t *bytes = malloc(size - 2);
	memcpy(bytes, data + 2, size - 2);
	struct memory m = {.bytes = bytes, .start = 0x7f0000000000, .length = size - 2};
	const struct module_memory memory = {.read = read_memory, .context = &m};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, AREA_BYTES) != 0)
		abort();
	struct module_memory_copy copy = {
	    .start = m.start + data[0] * UINT64_C(4096),
	    .pgoff = data[1] * UINT64_C(4096),
	    .area_bytes = AREA_BYTES,
	    .bytes_max = MOST,
	};
	copy.area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (copy.area == MAP_FAILED)
		abort();
	int error = module_memory_gather(&memory, &copy);
	if (copy.bytes > MOST || copy.length > AREA_BYTES)
		abort();
	munmap(copy.area, AREA_BYTES);
	if (!error && ftruncate(fd, (off_t)copy.length) == 0)
		read_file(fd);
	close(fd);
	free(bytes);
	return 0;
}

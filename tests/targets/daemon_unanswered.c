/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_unanswered READY: publishes an OpenTelemetry process context whose payload is a page of a
 * userfaultfd that nobody answers, makes the file READY, and sleeps as another user.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/userfaultfd.h>

enum { PAGE_BYTES = 4096, NOBODY = 65534 };

static void need(int held, const char *what)
{
	if (held)
		return;
	perror(what);
	_exit(1);
}

static void *userfault_page(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	char *page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register range = {{(uintptr_t)page, PAGE_BYTES}, UFFDIO_REGISTER_MODE_MISSING, 0};

	need(page != MAP_FAILED && fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 &&
	        ioctl(fd, UFFDIO_REGISTER, &range) == 0,
	    "userfaultfd");
	return page;
}

/* OTEP 4719: signature, version 2, length of the payload, time, address of the payload. */
static void publish(const void *payload)
{
	const uint64_t published = 5, address = (uintptr_t)payload;
	const int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC);
	char *header;

	need(fd >= 0 && ftruncate(fd, PAGE_BYTES) == 0, "memfd_create");
	header = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	need(header != MAP_FAILED, "mmap");
	memcpy(header, "OTEL_CTX\2\0\0\0\100\0\0", 16);
	memcpy(header + 16, &published, sizeof(published));
	memcpy(header + 24, &address, sizeof(address));
}

int main(int argc, char *argv[])
{
	need(argc > 1, "arguments");
	publish(userfault_page());
	const int fd = open(argv[1], O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	need(fd >= 0 && setuid(NOBODY) == 0, argv[1]);
	for (;;)
		pause();
}

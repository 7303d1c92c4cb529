/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a function at run time, names it in /tmp/perf-PID.map, and allocates below it. Prints its pid.
 *
 *   jit_names            leaves the map behind
 *   jit_names remove     deletes the map when its standard input has ended
 *   jit_names jitdump    names it in a jit-PID.dump of the working folder, with a line, and deletes that
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TIMES = 50 };

#if defined(__x86_64__)
/* push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret */
static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
#else
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret */
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
#endif

static void *volatile kept[TIMES];
static int count;

__attribute__((noinline, noclone)) void leaf(void)
{
	kept[count] = malloc(1000);
	if (!kept[count++])
		abort();
}

struct jitdump {
	uint32_t magic, version, header_bytes, machine, padding, pid;
	uint64_t made, flags;
	struct {
		uint32_t id, bytes;
		uint64_t time, start, count, line_start;
		uint32_t line, column;
		char file[16];
	} lines;
	struct {
		uint32_t id, bytes;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, start, code_bytes, index;
		char name[16];
	} load;
};

/* As a JIT tells perf: a page of the file is mapped, so that it can be found. */
static void write_jitdump(const char *path, const void *memory)
{
	const uint64_t start = (uintptr_t)memory;
	const struct jitdump dump = {.magic = 0x4a695444,
	    .version = 1,
	    .header_bytes = 40,
	    .pid = (uint32_t)getpid(),
	    .lines = {2, sizeof(dump.lines), 0, start, 1, start, 42, 0, "/srv/jitted.c"},
	    .load = {0, sizeof(dump.load), 0, 1, 1, start, start, sizeof(code), 1, "dumped_function"}};
	const int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
	if (fd < 0 || write(fd, &dump, sizeof(dump)) != sizeof(dump) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
}

static void write_map(const char *path, const void *memory)
{
	unlink(path); /* of an earlier process with this number */
	FILE *map = fopen(path, "w");
	if (!map || fprintf(map, "%lx %zx jitted_function\n", (unsigned long)memory, sizeof(code)) < 0 ||
	    fclose(map))
		abort();
}

int main(int argc, char **argv)
{
	const int jitdump = argc > 1 && !strcmp(argv[1], "jitdump");
	char path[64];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		abort();
	__builtin___clear_cache(memory, (char *)memory + sizeof(code));
	snprintf(path, sizeof(path), jitdump ? "jit-%d.dump" : "/tmp/perf-%d.map", (int)getpid());
	if (jitdump)
		write_jitdump(path, memory);
	else
		write_map(path, memory);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	void (*function)(void (*)(void));
	memcpy(&function, &memory, sizeof(function));
	for (int i = 0; i < TIMES; i++)
		function(leaf);
	/* Until the standard input ends. */
	char byte;
	while (read(0, &byte, 1) > 0)
		;
	if (jitdump || (argc > 1 && !strcmp(argv[1], "remove")))
		unlink(path);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a function at run time, names it in /tmp/perf-PID.map, and allocates below it. Prints its pid.
 *
 *   jit_names            leaves the map behind
 *   jit_names remove     deletes the map when its standard input has ended
 */
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

int main(int argc, char **argv)
{
	char path[64];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		abort();
	memcpy(memory, code, sizeof(code));
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		abort();
	__builtin___clear_cache(memory, (char *)memory + sizeof(code));
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	unlink(path); /* of an earlier process with this number */
	FILE *map = fopen(path, "w");
	if (!map || fprintf(map, "%lx %zx jitted_function\n", (unsigned long)memory, sizeof(code)) < 0 ||
	    fclose(map))
		abort();
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
	if (argc > 1 && !strcmp(argv[1], "remove"))
		unlink(path);
	return 0;
}

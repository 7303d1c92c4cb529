/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a function at run time, names it in /tmp/perf-PID.map, and allocates below it. Prints its pid.
 *
 *   jit_names            leaves the map behind
 *   jit_names remove     deletes the map when its standard input has ended
 *   jit_names jitdump    names it in a jit-PID.dump of the working folder, with a line, and deletes that
 *   jit_names rows       the same of code that keeps no frame pointer, with its unwind rows
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
/* sub $40, %rsp; call *%rdi; add $40, %rsp; ret */
static const uint8_t plain_code[] = {
    0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc};
/* the return address is at CFA - 8; CFA = rsp + 8; from byte 4 on + 48; from byte 10 on + 8 */
#define CIE_REST 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1
#define FDE_REST 0x44, 0x0e, 48, 0x46, 0x0e, 8, 0, 0, 0, 0, 0
#else
/* stp x29, x30, [sp, -16]!; mov x29, sp; blr x0; ldp x29, x30, [sp], 16; ret */
static const uint32_t code[] = {0xa9bf7bfd, 0x910003fd, 0xd63f0000, 0xa8c17bfd, 0xd65f03c0};
/* sub sp, sp, 48; str x30, [sp]; blr x0; ldr x30, [sp]; add sp, sp, 48; ret */
static const uint32_t plain_code[] = {0xd100c3ff, 0xf90003fe, 0xd63f0000, 0xf94003fe, 0x9100c3ff, 0xd65f03c0};
/* CFA = sp; from byte 4 on + 48, and x30 is at CFA - 48 from byte 8 to byte 16; from byte 20 on CFA = sp */
#define CIE_REST 0x78, 30, 1, 0x1b, 0x0c, 31, 0, 0, 0
#define FDE_REST 0x44, 0x0e, 48, 0x44, 0x9e, 6, 0x48, 0xde, 0x44, 0x0e, 0
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
};

/* .eh_frame, which counts on being behind the code, and an empty header */
struct rows {
	uint32_t id, bytes;
	uint64_t time, all_bytes, header_bytes, mapped_bytes;
	uint32_t cie_bytes, cie_id;
	uint8_t cie[16];
	uint32_t fde_bytes, fde_to_cie;
	int32_t fde_to_code;
	uint32_t code_bytes;
	uint8_t fde[12];
	uint32_t end;
	uint8_t header[24];
};

struct load {
	uint32_t id, bytes;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, start, code_bytes, index;
	char name[16];
};

static const void *made = code;
static size_t made_bytes = sizeof(code);

/* As a JIT tells perf: a page of the file is mapped, so that it can be found. */
static void write_jitdump(const char *path, const void *memory, int with_rows)
{
	const uint64_t start = (uintptr_t)memory;
	const struct jitdump dump = {.magic = 0x4a695444,
	    .version = 1,
	    .header_bytes = 40,
	    .pid = (uint32_t)getpid(),
	    .lines = {2, sizeof(dump.lines), 0, start, 1, start, 42, 0, "/srv/jitted.c"}};
	const struct rows rows = {.id = 4,
	    .bytes = sizeof(rows),
	    .all_bytes = 80,
	    .header_bytes = sizeof(rows.header),
	    .mapped_bytes = 80,
	    .cie_bytes = 20,
	    .cie = {1, 'z', 'R', 0, 1, CIE_REST},
	    .fde_bytes = 24,
	    .fde_to_cie = 28,
	    .fde_to_code = -(int32_t)((made_bytes + 7) / 8 * 8 + 32),
	    .code_bytes = (uint32_t)made_bytes,
	    .fde = {0, FDE_REST}};
	const struct load load = {0, sizeof(load), 0, 1, 1, start, start, made_bytes, 1, "dumped_function"};
	const int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);

	if (fd < 0 || write(fd, &dump, sizeof(dump)) != sizeof(dump) ||
	    (with_rows && write(fd, &rows, sizeof(rows)) != sizeof(rows)) ||
	    write(fd, &load, sizeof(load)) != sizeof(load) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
}

static void write_map(const char *path, const void *memory)
{
	unlink(path); /* of an earlier process with this number */
	FILE *map = fopen(path, "w");
	if (!map || fprintf(map, "%lx %zx jitted_function\n", (unsigned long)memory, made_bytes) < 0 ||
	    fclose(map))
		abort();
}

int main(int argc, char **argv)
{
	const int rows = argc > 1 && !strcmp(argv[1], "rows");
	const int jitdump = rows || (argc > 1 && !strcmp(argv[1], "jitdump"));
	char path[64];
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	if (rows) {
		made = plain_code;
		made_bytes = sizeof(plain_code);
	}
	memcpy(memory, made, made_bytes);
	if (mprotect(memory, 4096, PROT_READ | PROT_EXEC))
		abort();
	__builtin___clear_cache(memory, (char *)memory + made_bytes);
	snprintf(path, sizeof(path), jitdump ? "jit-%d.dump" : "/tmp/perf-%d.map", (int)getpid());
	if (jitdump)
		write_jitdump(path, memory, rows);
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust_adopt: a program that wants root's `heaptap adopt` to put a breakpoint into a file of its choice.
 *
 *   trust_adopt forge     this file has a note as the library has; it names the middle of an instruction of
 *                         answer(). Says in the shared region that the trigger is in this very file, makes
 *                         the file `ready` and waits for the file `go`.
 *   trust_adopt answer    what answer() returns: 42, or 204 with the breakpoint's byte 0xcc in its operand
 */
#include "proto/region.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int answer(void);

#if __x86_64__
__asm__(".text\n"
        ".globl answer\n"
        ".type answer, @function\n"
        "answer:\n"
        "	.byte 0xb8, 42, 0, 0, 0\n" /* mov $42, %eax */
        "	ret\n"
        ".section .note.stapsdt, \"\", @note\n"
        "	.balign 4\n"
        "	.4byte 8, 2f - 1f, 3\n"
        "	.asciz \"stapsdt\"\n"
        "1:	.8byte answer + 1, 0, 0\n"
        "	.asciz \"heaptap\"\n"
        "	.asciz \"sample\"\n"
        "	.asciz \"\"\n"
        "	.balign 4\n"
        "2:\n"
        ".text\n");
#else
int answer(void)
{
	return 42;
}
#endif

static struct region_header *find_region(void)
{
	char line[512];
	struct region_header *region = NULL;
	uintptr_t start;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps && !region && fgets(line, sizeof(line), maps))
		if (strstr(line, "/memfd:heaptap (deleted)") && sscanf(line, "%" SCNxPTR, &start) == 1)
			region = (struct region_header *)start;
	if (maps)
		fclose(maps);
	return region;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "answer") == 0) {
		printf("%d\n", answer());
		return 0;
	}
	static void *volatile block[100];
	for (int i = 0; i < 100; i++)
		block[i] = malloc(10000);
	struct region_header *region = find_region();
	if (!region)
		return 1;
	region->trigger_address = (uintptr_t)answer + 1;
	FILE *ready = fopen("ready", "w");
	if (!ready || fclose(ready) != 0)
		return 1;
	for (int i = 0; i < 3000 && access("go", F_OK) != 0; i++)
		usleep(10000);
	return 0;
}

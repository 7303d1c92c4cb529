/* SPDX-License-Identifier: Apache-2.0 */
/* build: -fno-builtin */
/*
 * trust_secret                    root's program: allocates with a secret on its stack
 * trust_secret become COMMAND...  with the setuid bit: becomes root for good and executes COMMAND
 */
#define _GNU_SOURCE
#include "tests/targets/trust_secret.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) static void *take_secretly(int i)
{
	char secret[sizeof(TRUST_SECRET_BEGIN TRUST_SECRET_END)];

	strcpy(secret, TRUST_SECRET_BEGIN);
	strcat(secret, TRUST_SECRET_END);
	void *block = malloc((size_t)(100 + i));
	__asm__ volatile("" : : "r"(secret), "r"(block) : "memory");
	return block;
}

int main(int argc, char *argv[])
{
	if (argc > 2 && strcmp(argv[1], "become") == 0) {
		if (setgid(0) != 0 || setuid(0) != 0)
			return 3;
		execv(argv[2], argv + 2);
		return 4;
	}
	for (int i = 0; i < 1000; i++)
		if (take_secretly(i) == NULL)
			return 5;
	return 0;
}

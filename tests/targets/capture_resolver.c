/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocates in the resolver of an IFUNC, which the loader calls while it relocates the program: before it
 * initializes thread-local storage. Prints "resolved".
 */
#include <stdio.h>
#include <stdlib.h>

static void *volatile kept;

static int answer(void)
{
	return kept != NULL;
}

static int (*resolve_answer(void))(void)
{
	free(calloc(3, 100));
	kept = realloc(malloc(100), 200);
	return answer;
}

int resolved(void) __attribute__((ifunc("resolve_answer")));

int main(void)
{
	puts(resolved() ? "resolved" : "not resolved");
	free(kept);
	return 0;
}

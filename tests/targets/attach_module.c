/* SPDX-License-Identifier: Apache-2.0 */
/* A library that attach_truth loads after somebody has attached to it. */
/* build: -shared -fPIC */
#include <stdlib.h>

void *module_alloc(size_t bytes);

__attribute__((noinline)) void *module_alloc(size_t bytes)
{
	void *volatile block = malloc(bytes); /* no tail call */
	return block;
}

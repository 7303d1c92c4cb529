/* SPDX-License-Identifier: Apache-2.0 */
/* trust_borrow LIBRARY: loads it, calls its work(), and stays until the sampler has read what that left. */
/* build: -ldl */
#include "proto/heaptap.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int call(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);
	void (*work)(void) = handle ? (void (*)(void))dlsym(handle, "work") : NULL;

	if (!work) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	work();
	heaptap_snapshot("worked");
	return 0;
}

int main(int argc, char **argv)
{
	return argc == 2 ? call(argv[1]) : 2;
}

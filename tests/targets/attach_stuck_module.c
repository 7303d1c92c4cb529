/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose constructor waits for a line: whoever loads it is in the loader meanwhile. */
/* build: -shared -fPIC */
#include <unistd.h>

__attribute__((constructor)) static void wait_for_line(void)
{
	char byte;

	if (write(1, "inside\n", 7) != 7)
		return;
	while (read(0, &byte, 1) == 1 && byte != '\n')
		;
}

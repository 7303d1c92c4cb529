/* SPDX-License-Identifier: Apache-2.0 */
/* build: -static */
/* A program that no loader touches; its exit status tells that it ran to its end. */
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	char *text = malloc(1 << 20);

	if (!text)
		return 1;
	snprintf(text, 1 << 20, "hello from a static program");
	puts(text);
	free(text);
	return 23;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* trust_hold FILE: allocates 4 MB and frees half of them, makes FILE, and waits for a signal to end it. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static void *volatile block[400];
	for (int i = 0; i < 400; i++)
		block[i] = malloc(10000);
	for (int i = 0; i < 200; i++)
		free(block[i]);
	FILE *file = argc == 2 ? fopen(argv[1], "w") : NULL;
	if (!file || fclose(file) != 0)
		return 1;
	for (;;)
		pause();
}

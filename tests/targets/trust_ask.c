/* SPDX-License-Identifier: Apache-2.0 */
/* trust_ask COUNT: asks for COUNT snapshots, one after the other, as fast as they come. Prints
 * how many were taken, and how many not. */
#include "proto/heaptap.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	static void *volatile block[100];
	int taken = 0, count = argc == 2 ? atoi(argv[1]) : 0;
	for (int i = 0; i < 100; i++)
		block[i] = malloc(10000);
	for (int i = 0; i < count; i++)
		taken += heaptap_snapshot("again");
	printf("%d %d\n", taken, count - taken);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/core/descriptors.h"

#include "sampler/linux/confinement.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

void descriptors_fill_gaps(void)
{
	int fd;

	do
		fd = open("/dev/null", O_PATH | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

void descriptors_drop(const int *kept, size_t count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	for (unsigned int first = STDERR_FILENO + 1, next; first < INT_MAX; first = next + 1) {
		next = INT_MAX;
		for (size_t i = 0; i < count; i++)
			if (kept[i] >= (int)first && (unsigned int)kept[i] < next)
				next = (unsigned int)kept[i];
		if (next > first)
			confinement_close_range(first, next - 1);
	}
}

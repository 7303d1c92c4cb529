/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/intake/sparse_run.h"

#include "proto/region.h"

#include <sys/types.h>
#include <unistd.h>

/* Pages that are swapped out are data, too. */
bool sparse_run_has(struct sparse_run *run, int fd, uint64_t offset)
{
	if (offset >= run->start && offset < run->end)
		return true;
	const off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
	if (data != (off_t)offset)
		return false;
	const off_t hole = lseek(fd, data, SEEK_HOLE);
	*run = (struct sparse_run){offset, hole > data ? (uint64_t)hole : offset + REGION_PAGE_BYTES};
	return true;
}

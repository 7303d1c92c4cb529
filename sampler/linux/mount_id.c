/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/linux/mount_id.h"

#include "sampler/linux/proc.h"

#include <stdio.h>
#include <unistd.h>

int mount_id_of(int fd)
{
	char name[32], line[128];
	int mount = -1;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	FILE *info = proc_open_text(getpid(), name);
	while (info && mount < 0 && fgets(line, sizeof(line), info))
		(void)sscanf(line, "mnt_id: %d", &mount);
	if (info)
		fclose(info);
	return mount;
}

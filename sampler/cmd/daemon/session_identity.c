/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/daemon/session_identity.h"

#include "pprof/codec/file.h"
#include "pprof/text/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "%36s %" PRId64 " %" PRIu64 " %d\n"
#define INPUT  "%36s %" SCNd64 " %" SCNu64 " %d"

enum { FILE_BYTES_MAX = 256 };

bool session_identity_parse(struct session_identity *identity, const char *text)
{
	int pid = 0;

	*identity = (struct session_identity){0};
	bool good =
	    sscanf(text, INPUT, identity->boot, &identity->unix_ns, &identity->monotonic_ns, &pid) == 4 &&
	    identity->unix_ns > 0 && pid > 0;
	identity->pid = pid;
	return good;
}

static void read_boot(char boot[SESSION_BOOT_BYTES])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, boot, SESSION_BOOT_BYTES - 1) : -1;

	boot[got > 0 ? got : 0] = '\0';
	boot[strcspn(boot, " \n")] = '\0';
	if (fd >= 0)
		close(fd);
	if (!boot[0])
		strcpy(boot, "unknown");
}

int session_identity_open(struct session_identity *identity, const char *path)
{
	char boot[SESSION_BOOT_BYTES], text[FILE_BYTES_MAX];
	uint8_t *bytes;
	size_t length;
	bool known = false;

	read_boot(boot);
	if (file_read(path, FILE_BYTES_MAX, &bytes, &length) == 0) {
		snprintf(text, sizeof(text), "%.*s", (int)length, (const char *)bytes);
		known = session_identity_parse(identity, text) && strcmp(identity->boot, boot) == 0;
		free(bytes);
	}
	if (known)
		return 0;
	*identity = (struct session_identity){
	    .unix_ns = clock_unix_ns(), .monotonic_ns = clock_now_ns(), .pid = getpid()};
	memcpy(identity->boot, boot, sizeof(boot));
	snprintf(text, sizeof(text), FORMAT, identity->boot, identity->unix_ns, identity->monotonic_ns,
	    (int)identity->pid);
	return file_publish(path, text, strlen(text), 0640, FILE_MKDIR);
}

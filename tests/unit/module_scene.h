/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of modules, after cmocka's headers: a folder with copies of programs. */
#ifndef TESTS_UNIT_MODULE_SCENE_H
#define TESTS_UNIT_MODULE_SCENE_H

#include "sampler/unwind/module.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/heaptap-module.XXXXXX";

static inline char *in_folder(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Copies FROM to PATH; a SERIAL other than 0 gives the copy a build id of its own (and not another length).
 * */
static inline void copy_file(const char *from, const char *path, uint32_t serial)
{
	int in = open(from, O_RDONLY), out = open(path, O_CREAT | O_TRUNC | O_RDWR, 0755);
	struct stat st;

	assert_true(in >= 0 && out >= 0);
	fstat(in, &st);
	char *bytes = malloc((size_t)st.st_size);
	assert_int_equal(read(in, bytes, (size_t)st.st_size), st.st_size);
	char *note = memmem(bytes, 4096, "\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU", 16);
	assert_non_null(note);
	if (serial)
		memcpy(note + 16, &serial, sizeof(serial));
	assert_int_equal(write(out, bytes, (size_t)st.st_size), st.st_size);
	free(bytes);
	close(in);
	close(out);
}

static inline struct module *get(
    struct modules *store, pid_t pid, const char *path, const struct module *like)
{
	struct module_request request = {.pid = pid, .path = path};

	if (like) {
		request.build_id = like->file.build_id;
		request.build_id_len = like->file.build_id_len;
	}
	return module_get(store, &request);
}

static inline int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

#endif

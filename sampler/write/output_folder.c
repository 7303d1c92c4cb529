/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of the files: the half of output.h that opens and makes folders. */
#include "sampler/write/output.h"

#include "pprof/codec/file.h"
#include "pprof/text/log_line.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_removed(int fd)
{
	struct stat status;

	return fstat(fd, &status) != 0 || status.st_nlink == 0;
}

int output_open_folder(const struct output *output, const char *path, unsigned int flags,
    struct folder *folder, const char **name)
{
	size_t skip = strlen(output->place);

	if (output->base.fd < 0 || strncmp(path, output->place, skip) != 0 || is_removed(output->base.fd))
		return file_open_folder(path, NULL, flags, folder, name);
	return file_open_folder(path + skip, &output->base, flags, folder, name);
}

void output_let_go(struct output *output)
{
	folder_close(&output->base);
}

/* Do all files go to the same folder? Only then is the folder known before there is a profile. */
static bool has_one_folder(const char *pattern)
{
	const char *end = strrchr(pattern, '/');

	for (const char *at = pattern; end && at < end; at++)
		if (*at == '%' && *++at != '%')
			return false;
	return true;
}

/* Is the folder above missing too? The path may have a mistake in it. */
static bool has_no_folder(const char *place)
{
	char above[PATH_MAX];
	size_t length = strlen(place);

	while (length && place[length - 1] == '/')
		length--;
	while (length && place[length - 1] != '/')
		length--;
	if (!length || length >= sizeof(above))
		return false;
	memcpy(above, place, length);
	above[length] = '\0';
	return access(above, F_OK) != 0;
}

static int check_folder(const struct output *output)
{
	struct folder folder;
	int ret = folder_open(&folder, NULL, *output->place ? output->place : ".", FOLDER_MAKE, 0777);

	if (ret)
		return ret;
	ret = file_check_folder(folder.fd);
	folder_close(&folder);
	return ret;
}

int output_check_folder(const char *argument, bool quiet)
{
	struct output output;
	struct stat status;
	int ret = output_init(&output, argument), shown;
	bool missing;

	if (ret)
		return ret;
	missing = has_no_folder(output.place);
	if ((stat(output.pattern, &status) != 0 || !S_ISCHR(status.st_mode)) &&
	    has_one_folder(output.pattern))
		ret = check_folder(&output);
	shown = (int)strlen(output.place);
	shown -= shown > 1; /* without the '/' */
	if (ret)
		log_line("no profile can be written to the folder %.*s: %s", shown ? shown : 1,
		    *output.place ? output.place : ".",
		    ret == -ELOOP ? "a symbolic link in another user's folder is not followed"
		                  : strerror(-ret));
	else if (missing && !quiet && !has_no_folder(output.place))
		log_line("made %.*s", shown, output.place);
	output_fini(&output);
	return ret;
}

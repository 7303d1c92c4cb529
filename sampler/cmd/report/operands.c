/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/report/operands.h"

#include "pprof/table/array.h"
#include "pprof/text/log_line.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with(const char *name, const char *ending)
{
	size_t length = strlen(name), end = strlen(ending);

	return length > end && strcmp(name + length - end, ending) == 0;
}

bool operands_is_profile_name(const char *path)
{
	static const char *const endings[] = {
	    ".pb.gz", ".pb", ".pb.gz" OPERANDS_SYMBOLIZED, ".pb" OPERANDS_SYMBOLIZED};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (ends_with(path, endings[i]))
			return true;
	return false;
}

/* Takes over `path`, also when it fails. */
static int path_add(struct operands *o, char *path, size_t operand, bool from_folder, int64_t until_ns)
{
	if (!path || array_reserve(&o->paths, &o->capacity, o->count + 1, sizeof(*o->paths))) {
		free(path);
		return -ENOMEM;
	}
	o->paths[o->count++] = (struct operand_path){path, operand, from_folder, until_ns};
	return 0;
}

/* A FIFO, a link to a device and a link to nothing are not opened. A file that we may not look at may be a
 * profile: the error comes when it is opened. */
static int entry_add(struct operands *o, const char *folder, int folder_fd, const char *name, size_t operand)
{
	bool here = strcmp(folder, ".") == 0, slash = ends_with(folder, "/");
	struct stat status;
	char *path = NULL;

	if (name[0] == '.' || !operands_is_profile_name(name) ||
	    (fstatat(folder_fd, name, &status, 0) ? errno == ENOENT : !S_ISREG(status.st_mode)))
		return 0;
	if (asprintf(&path, "%s%s%s", here ? "" : folder, here || slash ? "" : "/", name) < 0)
		path = NULL;
	return path_add(o, path, operand, true, 0);
}

static int folder_add(struct operands *o, const char *folder, size_t operand)
{
	struct dirent **entries = NULL;
	int folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int count = folder_fd < 0 ? -1 : scandirat(folder_fd, ".", &entries, NULL, alphasort);
	int err = count < 0 && errno == ENOMEM ? -ENOMEM : 0;

	if (count < 0 && !err) {
		log_line("cannot read %s: %s", folder, strerror(errno));
		o->unread_count++;
	}
	for (int i = 0; i < count; i++) {
		if (!err)
			err = entry_add(o, folder, folder_fd, entries[i]->d_name, operand);
		free(entries[i]);
	}
	free(entries);
	if (folder_fd >= 0)
		close(folder_fd);
	return err;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Can the word be a service's name? No file has this path. */
static bool may_be_service(const char *word)
{
	struct stat status;

	return !strchr(word, '/') && stat(word, &status) != 0 && errno == ENOENT;
}

/* 1 if the word is a service, 0 if it is not, -ENOMEM without a line, or -errno after a line. */
static int service_add(
    struct operands *o, const char *word, size_t operand, const struct store_operand_choice *choice)
{
	struct store_operand found;
	int ret = store_operand_find(&found, word, choice, !operands_is_profile_name(word)), err = 0;

	for (size_t i = 0; i < found.count && ret > 0 && !err; i++)
		err = path_add(o, strdup(found.files[i].path), operand, true, found.files[i].until_ns);
	store_operand_fini(&found);
	return err ? err : ret;
}

int operands_expand(
    struct operands *o, char *const *words, int count, const struct store_operand_choice *services)
{
	static char dot[] = ".", *const here[] = {dot};
	int err = 0;

	*o = (struct operands){.operand_count = count ? (size_t)count : 1, .is_default = !count};
	if (!count)
		words = here;
	for (size_t i = 0; i < o->operand_count && !err; i++) {
		if (is_folder(words[i])) {
			o->has_folder = true;
			err = folder_add(o, words[i], i);
		} else {
			int found =
			    services && may_be_service(words[i]) ? service_add(o, words[i], i, services) : 0;

			err = found < 0 ? found : found ? 0 : path_add(o, strdup(words[i]), i, false, 0);
		}
		if (err == -ENOMEM)
			log_line("not enough memory");
	}
	return err;
}

void operands_fini(struct operands *o)
{
	for (size_t i = 0; i < o->count; i++)
		free(o->paths[i].path);
	free(o->paths);
	memset(o, 0, sizeof(*o));
}

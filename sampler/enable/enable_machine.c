/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/enable/enable_machine.h"

#include "pprof/text/log_line.h"
#include "sampler/enable/preload_trial.h"
#include "sampler/loader/preload_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/etc"
#define NAME   "ld.so.preload"

/* "" if there is none. 0 or -errno, after a line; the caller frees *text. */
static int read_file(const struct root_folder *root, char **text, bool *is_there)
{
	size_t length;
	int error = root_folder_read(root, PRELOAD_FILE, text, &length);

	*is_there = error != -ENOENT;
	if (error == -ENOENT) {
		*text = strdup("");
		error = *text ? 0 : -ENOMEM;
	}
	if (!error && *is_there && strlen(*text) != length) {
		free(*text);
		error = -EINVAL;
	}
	if (error)
		log_line("cannot read %s" PRELOAD_FILE ": %s", root->path, strerror(-error));
	return error;
}

/* The text as it was, or no file. */
static int put_back(const struct root_folder *root, const char *text, bool was_there)
{
	return was_there ? root_folder_replace(root, FOLDER, NAME, text, NULL)
	                 : root_folder_remove(root, FOLDER, NAME, false);
}

/* Do programs start with the file that has just been written? As in the trial, but for real. */
static bool programs_start(void)
{
	static char *const arguments[] = {(char *)"/bin/true", NULL}, *const environment[] = {NULL};
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		execve(arguments[0], arguments, environment);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid < 0 || status == 0;
}

static int check(const struct root_folder *root, const char *library, const char *text)
{
	char reason[2048];

	if (!preload_library_is_preloadable(library)) {
		log_line(PRELOAD_FILE " cannot hold the path %s", library);
		return -EINVAL;
	}
	if (*root->path)
		return 0;
	int error = enable_library_check(library, reason, sizeof(reason));
	if (!error)
		error = preload_trial_run(text, reason, sizeof(reason));
	if (error)
		log_line(PRELOAD_FILE " is left as it is: %s", reason);
	return error;
}

static int write_file(const struct root_folder *root, const char *old, bool was_there, const char *text)
{
	int error = root_folder_replace(root, FOLDER, NAME, text, NULL);

	if (error) {
		log_line("cannot write %s" PRELOAD_FILE ": %s", root->path, strerror(-error));
		return error;
	}
	if (*root->path || programs_start())
		return 0;
	error = put_back(root, old, was_there);
	log_line("/bin/true does not start with the new " PRELOAD_FILE ": %s",
	    error ? "REMOVE ITS FIRST LINE" : "it is as it was before");
	return -EIO;
}

int enable_machine_add(const struct root_folder *root, const struct enable_library *library)
{
	char *old, *text;
	bool was_there;

	if (read_file(root, &old, &was_there))
		return 1;
	if (preload_file_state(old, library->path) == PRELOAD_FILE_FIRST) {
		printf("%s" PRELOAD_FILE ": is enabled already\n", root->path);
		free(old);
		return 0;
	}
	text = preload_file_add(old, library->path);
	int error = text ? check(root, library->path, text) : -ENOMEM;
	if (!error)
		error = write_file(root, old, was_there, text);
	if (!error)
		printf("%s" PRELOAD_FILE
		       ": wrote %s as its first line; what is started from now on loads it\n",
		    root->path, library->path);
	free(text);
	free(old);
	return error ? 1 : 0;
}

int enable_machine_remove(const struct root_folder *root, const struct enable_library *library, bool quiet)
{
	char *old, *text, *rest;
	bool was_there;
	int error = 0;

	if (read_file(root, &old, &was_there))
		return 1;
	text = strdup(old);
	for (size_t i = 0; text && i < library->count; i++) {
		rest = preload_file_remove(text, library->paths[i]);
		free(text);
		text = rest;
	}
	if (!text)
		error = -ENOMEM;
	else if (strcmp(text, old) != 0)
		error = put_back(root, text, *text != '\0');
	if (error)
		log_line("cannot change %s" PRELOAD_FILE ": %s", root->path, strerror(-error));
	else if (strcmp(text, old) != 0)
		printf("%s" PRELOAD_FILE ": removed our line\n", root->path);
	else if (!quiet)
		printf("%s" PRELOAD_FILE ": is not enabled\n", root->path);
	free(text);
	free(old);
	return error ? 1 : 0;
}

enum preload_file_state enable_machine_state(
    const struct root_folder *root, const struct enable_library *library, const char **path)
{
	enum preload_file_state state = PRELOAD_FILE_ABSENT;
	char *text;
	size_t length;

	if (root_folder_read(root, PRELOAD_FILE, &text, &length) != 0)
		return state;
	for (size_t i = 0; i < library->count && state == PRELOAD_FILE_ABSENT; i++) {
		state = preload_file_state(text, library->paths[i]);
		*path = library->paths[i];
	}
	free(text);
	return state;
}

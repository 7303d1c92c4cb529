/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/record/installed_program.h"

#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/core/descriptors.h"
#include "sampler/inject/foreign_preload.h"
#include "sampler/linux/installed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void installed_program_add(struct installed_program_words *words, const char *format, ...)
{
	char **grown = reallocarray(words->at, words->count + 2, sizeof(*grown));
	va_list args;

	if (!grown) {
		words->failed = true;
		return;
	}
	words->at = grown;
	va_start(args, format);
	if (vasprintf(&words->at[words->count], format, args) < 0)
		words->failed = true;
	else
		words->count++;
	va_end(args);
	words->at[words->count] = NULL;
}

void installed_program_add_text(struct installed_program_words *words, const char *name, const char *value)
{
	if (value)
		installed_program_add(words, "--%s=%s", name, value);
}

void installed_program_words_free(struct installed_program_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->at[i]);
	free(words->at);
}

int installed_program_find(const char *program, char path[PATH_MAX])
{
	int err = installed_file_find(program, path, PATH_MAX);

	if (err)
		log_line("%s not found next to heaptap or in %s", program, HEAPTAP_LIBDIR);
	return err;
}

void installed_program_become(const char *path, const struct installed_program_words *words)
{
	foreign_preload_hide(environ);
	if (words->failed)
		log_line("cannot run %s: out of memory", path);
	else if (execv(path, words->at))
		log_line("cannot run %s: %s", path, strerror(errno));
}

_Noreturn void installed_program_become_beside(
    const char *path, const struct installed_program_words *words, const int *kept, size_t count)
{
	sigset_t none;

	setsid();
	descriptors_drop(kept, count);
	for (size_t i = 0; i < count; i++)
		if (kept[i] >= 0)
			fcntl(kept[i], F_SETFD, 0);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	installed_program_become(path, words);
	_exit(STATUS_NOT_FOUND);
}

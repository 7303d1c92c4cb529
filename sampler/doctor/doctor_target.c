/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/doctor/doctor_target.h"

#include "pprof/text/log_line.h"
#include "sampler/doctor/doctor_process.h"
#include "sampler/doctor/doctor_program.h"
#include "sampler/doctor/doctor_script.h"
#include "sampler/linux/program_path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int doctor_target_examine(struct findings *findings, const char *name)
{
	char path[PATH_MAX], program[PATH_MAX], *end;
	struct stat status;
	long pid = strtol(name, &end, 10);

	if (*name && !*end && pid > 0 && pid <= INT_MAX)
		return doctor_process_examine(findings, (pid_t)pid);
	if (*name && !*end) {
		log_line("%s is not a process id", name);
		return -ESRCH;
	}
	if (program_path_find(name, path, sizeof(path))) {
		int err = doctor_script_resolve(findings, path, program, sizeof(program));

		return err ? err : doctor_program_examine(findings, program, program, false);
	}
	if (strchr(name, '/'))
		log_line("there is no file %s", name);
	else if (stat(name, &status) == 0 && S_ISDIR(status.st_mode))
		log_line("%s is a folder: name a program in it", name);
	else
		log_line(access(name, F_OK) == 0
		        ? "there is no program %s in PATH; the one here: heaptap doctor ./%s"
		        : "there is no program %s in PATH",
		    name, name);
	return -ENOENT;
}

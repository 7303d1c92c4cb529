/* SPDX-License-Identifier: Apache-2.0 */
/* The command line's entry: finds the command, parses its options, runs it. The only file that calls exit. */
#include "pprof/store/exit_code.h"
#include "pprof/text/log_line.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/help.h"
#include "sampler/cmd/cli/options.h"
#include "sampler/cmd/cli/options_rows.h"
#include "sampler/cmd/cli/other_words.h"
#include "sampler/cmd/record/end_summary.h"
#include "sampler/cmd/record/installed_program.h"
#include "sampler/cmd/record/session.h"
#include "sampler/cmd/report/report.h"
#include "sampler/cmd/report/report_answer.h"
#include "sampler/cmd/status/status.h"
#include "sampler/core/own_resources.h"
#include "sampler/inject/foreign_preload.h"
#include "sampler/inject/holder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One entry per command; `bit` chooses its options. */
static const struct command commands[] = {
    {.name = "record",
        .bit = COMMAND_RECORD,
        .synopsis = "[OPTIONS] [--] COMMAND [ARG...] | -P PID[,PID...]",
        .operand = "COMMAND",
        .summary = "profile the heap of COMMAND and all it starts, or of PIDs",
        .run = front_run,
        .examples = "heaptap record ./server --its-options\n"
                    "heaptap record -p 16K -o profiles/ python3 job.py\n"
                    "heaptap record --on rss=2G --on inuse=+256M ./server\n"
                    "heaptap record -e cpu-clock@99 ./server\n"
                    "heaptap record -P $(pidof redis-server) --duration 5m"},
    {.name = "attach",
        .bit = COMMAND_RECORD,
        .synopsis = "[OPTIONS] PID...",
        .operand = "PID",
        .takes_pids = true,
        .mixed = true,
        .summary = "the same as record -P: profile processes that run already",
        .run = front_run,
        .examples = "heaptap attach $(pidof redis-server) --duration 5m\n"
                    "heaptap attach -p 16K --children=no 4711"},
    {.name = "snapshot",
        .bit = COMMAND_SNAPSHOT,
        .synopsis = "PID... | --session PID | --service NAME | --all",
        .mixed = true,
        .summary = "write snapshots of profiled processes now",
        .run = snapshot_client_run,
        .examples = "heaptap snapshot $(pidof redis-server)\n"
                    "heaptap snapshot --all"},
    {.name = "events",
        .bit = COMMAND_EVENTS,
        .synopsis = "[REGEX]",
        .summary = "list the perf events that record -e can sample here",
        .run = event_list_run,
        .examples = "heaptap events\n"
                    "heaptap events 'clock|fault'"},
    {.name = "report",
        .group = COMMAND_LOOK,
        .bit = COMMAND_REPORT,
        .synopsis = "[OPTIONS] [PROFILE | FOLDER | SERVICE[@TIME]]...",
        .mixed = true,
        .summary = "show what is in a profile: tables, call tree, leaks",
        .run = report_run,
        .examples = "heaptap report heaptap.server.4711.peak.pb.gz\n"
                    "heaptap report --leaks heaptap.server.4711.exit.pb.gz\n"
                    "heaptap report --fail-on growth FOLDER\n"
                    "heaptap report redis-server@14:30"},
    {.name = "diff",
        .group = COMMAND_LOOK,
        .bit = COMMAND_DIFF,
        .synopsis = "[OPTIONS] BASE NEW | [FOLDER]",
        .mixed = true,
        .summary = "show what changed between profiles, folders or sessions",
        .run = diff_run,
        .examples = "heaptap diff before.pb.gz after.pb.gz\n"
                    "heaptap diff --sort alloc --fail-over 10M old.pb.gz new.pb.gz\n"
                    "heaptap diff redis-server@2h redis-server"},
    {.name = "export",
        .group = COMMAND_LOOK,
        .bit = COMMAND_EXPORT,
        .synopsis = "-f FORMAT [OPTIONS] [PROFILE | FOLDER | SERVICE[@TIME]]...",
        .mixed = true,
        .summary = "write a profile in the format of another tool",
        .run = export_run,
        .examples = "heaptap export -f flamegraph -o heap.html heaptap.server.4711.peak.pb.gz\n"
                    "heaptap export -f folded server.exit.pb.gz | flamegraph.pl >heap.svg"},
    {.name = "serve",
        .group = COMMAND_LOOK,
        .bit = COMMAND_SERVE,
        .synopsis = "[OPTIONS] [STORE | PROFILE | FOLDER]...",
        .mixed = true,
        .summary = "show live heaps in a browser, and /debug/pprof to scrapers",
        .run = web_server_run,
        .examples = "heaptap serve      # what is recorded now, and what the daemon profiles\n"
                    "heaptap serve --listen 127.0.0.1:8080 profiles/\n"
                    "heaptap serve --listen 0.0.0.0:7337 --token-file token\n"
                    "ssh -L 7337:127.0.0.1:7337 HOST    # shows the heaptap serve of HOST here\n"
                    "heaptap serve & go tool pprof http://127.0.0.1:7337/debug/pprof/heap"},
    {.name = "daemon",
        .group = COMMAND_ALWAYS_ON,
        .bit = COMMAND_DAEMON,
        .synopsis = "[OPTIONS]",
        .summary = "profile each program that loads the library, all day",
        .run = daemon_run,
        .examples = "heaptap daemon\n"
                    "heaptap daemon --check\n"
                    "heaptap daemon --config ./heaptap.conf --store ./profiles -v"},
    {.name = "enable",
        .group = COMMAND_ALWAYS_ON,
        .bit = COMMAND_ENABLE,
        .synopsis = "[OPTIONS] UNIT... | --now",
        .mixed = true,
        .summary = "let systemd units load the library for the daemon",
        .run = enable_command_run,
        .examples = "heaptap enable redis-server nginx\n"
                    "heaptap enable --root /srv/image redis-server"},
    {.name = "disable",
        .group = COMMAND_ALWAYS_ON,
        .bit = COMMAND_DISABLE,
        .synopsis = "[OPTIONS] [UNIT]... | --now",
        .mixed = true,
        .summary = "undo enable, for these units or for all",
        .run = disable_command_run,
        .examples = "heaptap disable redis-server\n"
                    "heaptap disable --now"},
    {.name = "status",
        .group = COMMAND_ALWAYS_ON,
        .bit = COMMAND_STATUS,
        .synopsis = "[OPTIONS] [PID | SERVICE]...",
        .mixed = true,
        .summary = "show what the daemon profiles: what is in use, what grows",
        .run = status_run,
        .examples = "heaptap status\n"
                    "heaptap status redis-server\n"
                    "heaptap status --json | jq '.processes[] | select(.growth == \"grows\")'"},
    {.name = "push",
        .group = COMMAND_ALWAYS_ON,
        .bit = COMMAND_PUSH,
        .synopsis = "[OPTIONS] PROFILE | FOLDER... | --follow [FOLDER]...",
        .mixed = true,
        .summary = "send profiles to Pyroscope, Parca or OTLP",
        .run = pusher_run,
        .examples = "heaptap push --to pyroscope+http://localhost:4040 profiles/\n"
                    "heaptap push --follow --to parca+https://parca.example.org profiles/\n"
                    "heaptap push --follow --config /etc/heaptap/heaptap.conf"},
    {.name = "ls",
        .group = COMMAND_FILES,
        .bit = COMMAND_LS,
        .synopsis = "[OPTIONS] [PROFILE | FOLDER | SERVICE[@TIME]]...",
        .mixed = true,
        .summary = "list sessions, their processes and profiles",
        .run = ls_run,
        .examples = "heaptap ls\n"
                    "heaptap ls -v profiles/\n"
                    "heaptap ls /var/lib/heaptap/store"},
    {.name = "merge",
        .group = COMMAND_FILES,
        .bit = COMMAND_MERGE,
        .synopsis = "-o FILE [PROFILE | FOLDER | SERVICE[@TIME]]...",
        .mixed = true,
        .summary = "merge profiles into one by adding them up",
        .run = merge_run,
        .examples = "heaptap merge -o all.pb.gz heaptap.worker.*.exit.pb.gz\n"
                    "heaptap merge --anonymize -o public.pb.gz heaptap.server.4711.peak.pb.gz"},
    {.name = "symbolize",
        .group = COMMAND_FILES,
        .bit = COMMAND_SYMBOLIZE,
        .synopsis = "[OPTIONS] PROFILE | FOLDER...",
        .operand = "PROFILE",
        .mixed = true,
        .summary = "look up the names that record --symbols raw left out",
        .run = symbolize_run,
        .examples = "heaptap symbolize profiles/\n"
                    "heaptap symbolize --debuginfod -o named.pb.gz raw.pb.gz"},
    {.name = "check",
        .group = COMMAND_FILES,
        .bit = COMMAND_CHECK,
        .synopsis = "[OPTIONS] PROFILE | FOLDER | SERVICE[@TIME]...",
        .operand = "PROFILE",
        .mixed = true,
        .summary = "say why other tools reject a profile",
        .run = check_run,
        .examples = "heaptap check *.pb.gz\n"
                    "heaptap check --strict profile.pb.gz"},
    {.name = "doctor",
        .group = COMMAND_REPAIR,
        .bit = COMMAND_DOCTOR,
        .synopsis = "[PID | PROGRAM]",
        .summary = "say what can be profiled here, and how to fix the rest",
        .run = doctor_run,
        .examples = "heaptap doctor\n"
                    "heaptap doctor ./server\n"
                    "heaptap doctor 4711"},
    {.name = "adopt",
        .group = COMMAND_REPAIR,
        .bit = COMMAND_ADOPT,
        .synopsis = "[OPTIONS] PID",
        .operand = "PID",
        .summary = "continue to profile a process whose sampler has died",
        .run = session_adopt,
        .examples = "heaptap adopt 4711\n"
                    "heaptap adopt -o profiles/ 4711"},
    {.name = "detach",
        .group = COMMAND_REPAIR,
        .bit = COMMAND_DETACH,
        .synopsis = "PID",
        .operand = "PID",
        .summary = "take the hooks out of a process whose sampler has died",
        .run = session_detach,
        .examples = "heaptap detach 4711\n"
                    "heaptap detach $(pidof redis-server)"},
    {.name = "completion",
        .group = COMMAND_REPAIR,
        .bit = COMMAND_COMPLETION,
        .synopsis = "bash | zsh | fish",
        .operand = "shell",
        .summary = "print completions for a shell",
        .run = completion_run,
        .examples = "source <(heaptap completion bash)\n"
                    "heaptap completion fish >~/.config/fish/completions/heaptap.fish"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static int fail_unknown(const char *word)
{
	other_words_say(word, commands, COMMAND_COUNT);
	return STATUS_USAGE;
}

/* `heaptap help`, `heaptap help record` */
static int help_say(const char *name)
{
	const struct command *command = name ? command_find(name) : NULL;

	if (name && !command && strcmp(name, "help") != 0 && strcmp(name, "version") != 0)
		return fail_unknown(name);
	if (command)
		return help_run(command);
	help_commands(stdout, commands, COMMAND_COUNT);
	return EXIT_SUCCESS;
}

static int version_run(void)
{
	const char *commit = HEAPTAP_COMMIT; /* empty where the sources do not know it: .ci/commit */

	printf("heaptap %s%s%s%s\n", HEAPTAP_VERSION, *commit ? " (" : "", commit, *commit ? ")" : "");
	return EXIT_SUCCESS;
}

static int command_run(const struct command *command, int argc, char *argv[])
{
	struct options options;
	char error[1024];

	if (options_parse(&options, command, argc, argv, error, sizeof(error))) {
		log_line("%s", error);
		return STATUS_USAGE;
	}
	if (options.help || options.help_all) {
		help_command(stdout, options_tables, command, options.help_all);
		return EXIT_SUCCESS;
	}
	if (options.version)
		return version_run();
	options.commands = commands;
	options.command_count = COMMAND_COUNT;
	return command->run(&options);
}

static int word_run(int argc, char *argv[])
{
	const struct command *command = command_find(argv[1]);

	if (strcmp(argv[1], HOLDER_COMMAND) == 0)
		return holder_main(argc - 2, argv + 2);
	if (command)
		return command_run(command, argc - 2, argv + 2);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return help_say(argv[2]);
	if (strcmp(argv[1], "version") == 0 || strcmp(argv[1], "--version") == 0)
		return version_run();
	if (other_words_is_program(argv[1]))
		return command_run(command_find("record"), argc - 1, argv + 1);
	return fail_unknown(argv[1]);
}

/* If standard output could not be written, the exit status is a failure. */
static int output_end(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	log_line("cannot write standard output: %s", strerror(errno));
	return status ? status : EXIT_FAILURE;
}

/* Stands before the program's name in the path of a second execution: it says that we have hidden
 * LD_PRELOAD. A variable could not say that: sudo, and the loader of a program that gains privileges,
 * remove LD_PRELOAD and do not know our variables. */
static const char again[] = "/.//./";

static bool is_second(const char *path)
{
	const char *slash = strrchr(path, '/');
	const size_t length = sizeof(again) - 1;

	return slash && (size_t)(slash + 1 - path) >= length &&
	    memcmp(slash + 1 - length, again, length) == 0;
}

/* Returns only if that fails. */
static void execute_again(const char *path, char *argv[], char *environment[])
{
	char second[4096];
	const char *slash = strrchr(path, '/'), *folder = slash ? path : ".",
	           *name = slash ? slash + 1 : path;
	const size_t folder_length = slash ? (size_t)(slash - path) : 1, name_bytes = strlen(name) + 1;

	if (folder_length + sizeof(again) - 1 + name_bytes > sizeof(second))
		return;
	memcpy(second, folder, folder_length);
	memcpy(second + folder_length, again, sizeof(again) - 1);
	memcpy(second + folder_length + sizeof(again) - 1, name, name_bytes);
	syscall(SYS_execve, second, argv, environment);
}

/*
 * Runs before the constructors of the libraries in LD_PRELOAD, and executes heaptap again without them: see
 * foreign_preload.h. It calls `syscall`, for such a library may have an execve of its own. The second
 * execution knows itself by its path, so there is no third. It uses the name that heaptap was executed by,
 * since that gives the process its name. If no exec succeeds (there is no /proc), LD_PRELOAD stays as the
 * user has set it. So it does if the loader was called as a program: then AT_BASE is 0, and both names are
 * the loader's.
 */
static void leave_foreign_preload(int argc, char *argv[], char *environment[])
{
	const char *path = (const char *)getauxval(AT_EXECFN);

	(void)argc;
	if (path && is_second(path))
		foreign_preload_restore(environment);
	else if (path && getauxval(AT_BASE) && foreign_preload_hide(environment)) {
		execute_again(path, argv, environment);
		execute_again("/proc/self/exe", argv, environment);
		foreign_preload_restore(environment);
	}
}

__attribute__((section(".preinit_array"), used)) static void (*const before_constructors)(
    int argc, char *argv[], char *environment[]) = leave_foreign_preload;

int main(int argc, char *argv[])
{
	descriptors_fill_gaps();
	if (argc < 2) {
		help_commands(stderr, commands, COMMAND_COUNT);
		exit(STATUS_USAGE);
	}
	end_summary_answer_by(report_answer_of);
	exit(output_end(word_run(argc, argv)));
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/options.h"

#include "pprof/table/array.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options_rows.h"
#include "sampler/core/control_path.h"
#include "sampler/write/interval.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

int options_set_quiet(struct options *options, const char *value)
{
	options->verbosity = -1;
	return 0;
}

int options_set_verbose(struct options *options, const char *value)
{
	options->verbosity = options->verbosity < 0 ? 1 : options->verbosity + 1;
	return 0;
}

static int set_socket(struct options *options, const char *value)
{
	if (!*value || strlen(value) >= CONTROL_PATH_BYTES)
		return -EINVAL;
	options->socket = value;
	return 0;
}

static const struct option snapshot_rows[] = {
    {COMMAND_SNAPSHOT, '\0', "all", OPTION_FLAG, OPTION_FIELD(snapshot.all),
        .help = "all processes of all your sessions (as root: of\n"
                "every user's)"},
    {COMMAND_SNAPSHOT, '\0', "session", OPTION_COUNT, OPTION_FIELD(snapshot.session), .least = 1,
        .most = INT32_MAX, .value = "PID",
        .allowed = "the process id of `heaptap record` or of a process that it profiles",
        .help = "all processes of the session that profiles PID, or\n"
                "whose `heaptap record` has this pid"},
    {COMMAND_SNAPSHOT, '\0', "service", OPTION_TEXT, OPTION_FIELD(snapshot.service), .value = "NAME",
        .allowed = "the name of a service, as `heaptap status` shows it",
        .help = "every process of a service of the daemon"},
};

static const struct option daemon_rows[] = {
    {COMMAND_DAEMON, '\0', "config", OPTION_TEXT, OPTION_FIELD(daemon.config), .value = "FILE",
        .allowed = "a file",
        .help = "configuration file, default\n"
                "/etc/heaptap/heaptap.conf (of a user:\n"
                "$XDG_CONFIG_HOME/heaptap/heaptap.conf)"},
    {COMMAND_DAEMON, '\0', "check", OPTION_FLAG, OPTION_FIELD(daemon.check),
        .help = "check the configuration: 'ok', or all its faults"},
    {COMMAND_DAEMON, '\0', "store", OPTION_TEXT, OPTION_FIELD(daemon.store), .value = "DIR",
        .allowed = "a folder",
        .help = "where profiles go, default as configured, or\n"
                "/var/lib/heaptap/store (of a user:\n"
                "$XDG_STATE_HOME/heaptap/store)"},
    {COMMAND_DAEMON, 'q', "quiet", OPTION_SET, .set = options_set_quiet, .help = "report only what is wrong"},
    {COMMAND_DAEMON, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "report every process that is found, and why"},
};

/* Options that commands of several files have. */
static const struct option rows[] = {
    OPTION_HEADING("help"),
    {COMMAND_DAEMON | COMMAND_STATUS | COMMAND_SNAPSHOT | COMMAND_DOCTOR | COMMAND_SERVE | COMMAND_ENABLE |
            COMMAND_DISABLE,
        '\0', "socket", OPTION_SET, .set = set_socket, .value = "PATH",
        .allowed = "a path of at most 107 bytes",
        .help = "the daemon's control socket, default\n"
                "$HEAPTAP_SOCKET or /run/heaptap/control (a user's\n"
                "own: $XDG_RUNTIME_DIR/heaptap/control, without\n"
                "that variable /tmp/heaptap-UID/control)"},
    {~0u, 'h', "help", OPTION_STOP, OPTION_FIELD(help),
        .help = "print examples, and the options that people use"},
    {~0u, '\0', "help-all", OPTION_STOP, OPTION_FIELD(help_all), .help = "print all options"},
    {~0u, '\0', "version", OPTION_STOP, OPTION_FIELD(version), .help = "print heaptap's version"},
};

static const struct option_table options_snapshot = {snapshot_rows, ARRAY_COUNT(snapshot_rows)};
static const struct option_table options_daemon = {daemon_rows, ARRAY_COUNT(daemon_rows)};
static const struct option_table options_all = {rows, ARRAY_COUNT(rows)};

const struct option_table *const options_tables[] = {&options_record, &options_snapshot, &options_read,
    &options_push, &options_serve, &options_daemon, &options_enable, &options_all, NULL};

void options_defaults(struct options *options)
{
	memset(options, 0, sizeof(*options));
	options->record.heap.period_bytes = PERIOD_BYTES_DEFAULT;
	options->record.heap.stack_bytes = STACK_BYTES_DEFAULT;
	options->record.interval_ns = INTERVAL_USUAL;
	options->record.on_limit_ns = ON_LIMIT_NS_DEFAULT;
	options->record.heap.temporary_ns = TEMPORARY_NS_DEFAULT;
	options->record.heap.signal = SIGUSR1;
	options->read.format = -1;
	options->read.threshold_permille = THRESHOLD_PERMILLE_DEFAULT;
	options->read.fail_over_bytes = FAIL_OVER_NEVER;
	options->read.memory_max_bytes = MEMORY_MAX_BYTES_DEFAULT;
}

/* The operands are values of --pid. */
static int take_pids(struct options *options, const struct command *command, char *error, size_t error_bytes)
{
	for (int i = 0; i < options->operand_count; i++) {
		const char *word = options->operands[i];

		if (options_add_pids(options, word) == 0)
			continue;
		text_append(error, error_bytes, "'%s' is not a process id", word);
		if (options->record.pid_count == OPTION_PIDS_MAX)
			text_append(error, error_bytes, ", or there are more than %d", OPTION_PIDS_MAX);
		else if (strchr(word, '/'))
			text_append(error, error_bytes, "; to start it: heaptap record %s", word);
		else if (option_value_is_name(word))
			text_append(
			    error, error_bytes, "; by name: heaptap %s $(pidof %s)", command->name, word);
		return -EINVAL;
	}
	options->operand_count = 0;
	return 0;
}

int options_parse(struct options *options, const struct command *command, int argc, char *argv[], char *error,
    size_t error_bytes)
{
	int first, ret;

	options_defaults(options);
	if (error_bytes)
		error[0] = '\0';
	ret = option_parse(options_tables, command, options, argc, argv, &first, error, error_bytes);
	if (ret)
		return ret < 0 ? ret : 0;
	if (!options->record.min_samples)
		options->record.min_samples =
		    command->bit == COMMAND_RECORD && options->record.heap.period_bytes > 1
		    ? MIN_SAMPLES_DEFAULT
		    : 1;
	options->operands = argv + first;
	options->operand_count = argc - first;
	if (command->takes_pids && take_pids(options, command, error, error_bytes))
		return -EINVAL;
	if (command->bit == COMMAND_RECORD && options_record_check(options, error, error_bytes))
		return -EINVAL;
	if (command->operand && !options->record.pid_count && !options->operand_count) {
		text_append(error, error_bytes, "no %s given; usage: heaptap %s %s", command->operand,
		    command->name, command->synopsis);
		if (command->bit == COMMAND_RECORD &&
		    options->record.heap.period_bytes != PERIOD_BYTES_DEFAULT)
			text_append(error, error_bytes,
			    " (-p is the period in bytes; the pid of a process that runs already goes to "
			    "-P)");
		return -EINVAL;
	}
	return 0;
}

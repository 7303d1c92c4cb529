/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/cmd/cli/options.h"

#include "pprof/table/array.h"
#include "pprof/text/text.h"
#include "sampler/cmd/cli/command.h"
#include "sampler/cmd/cli/options_rows.h"
#include "sampler/core/control_socket.h"
#include "sampler/write/interval.h"

#include <errno.h>
#include <limits.h>
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

/* ---- push: the options of a target are also options of record, for its --push */

#define TARGETED (COMMAND_PUSH | COMMAND_RECORD)
#define URLS                                                                                               \
	"pyroscope+http(s)://HOST[:PORT][/PATH], parca+http(s):// or otlp+http(s):// (datadog+http:// is " \
	"gone)"
#define MS UINT64_C(1000000)

/* heaptap-push checks the rest of a URL. */
static int set_url(struct options *options, const char *value)
{
	static const char *const schemes[] = {"pyroscope+http://", "pyroscope+https://", "parca+http://",
	    "parca+https://", "otlp+http://", "otlp+https://"};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (strncmp(value, schemes[i], strlen(schemes[i])) == 0 && value[strlen(schemes[i])]) {
			options->push.url = value;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_label(struct options *options, const char *value)
{
	const char *equals = strchr(value, '=');

	if (!equals || equals == value || !equals[1] || options->push.label_count == OPTION_LABELS_MAX)
		return -EINVAL;
	options->push.labels[options->push.label_count++] = value;
	return 0;
}

static const struct option push_rows[] = {
    OPTION_HEADING("to a server"),
    {COMMAND_PUSH, '\0', "to", OPTION_SET, .set = set_url, .value = "URL", .allowed = URLS,
        .help = "where to: pyroscope+http(s)://HOST:PORT[/PATH],\n"
                "parca+http(s):// or, experimental,\n"
                "otlp+http(s)://"},
    {COMMAND_RECORD, '\0', "push", OPTION_SET, .set = set_url, .value = "URL", .allowed = URLS,
        .help = "send snapshots and exit profiles to a server, too:\n"
                "pyroscope+http(s)://HOST:PORT, parca+http(s)://,\n"
                "otlp+http(s)://"},
    {COMMAND_PUSH, '\0', "follow", OPTION_FLAG, OPTION_FIELD(push.follow),
        .help = "send what comes into the folders, until stopped;\n"
                "what cannot be sent waits on disk"},
    {COMMAND_PUSH, '\0', "config", OPTION_TEXT, OPTION_FIELD(push.config), .value = "FILE",
        .allowed = "the name of a file",
        .help = "for --follow: targets from the sections\n"
                "[push NAME], the folder from [daemon] store"},
    {TARGETED, '\0', "token-file", OPTION_TEXT, OPTION_FIELD(push.token_file), .value = "FILE",
        .allowed = "the name of a file with one line",
        .help = "a token for the server (Authorization: Bearer), or\n"
                "with --user the password"},
    {TARGETED, '\0', "user", OPTION_TEXT, OPTION_FIELD(push.user), .value = "USER", .allowed = "a name",
        .help = "user for the server (Authorization: Basic)"},
    {TARGETED, '\0', "tenant", OPTION_TEXT, OPTION_FIELD(push.tenant), .value = "TENANT",
        .allowed = "the name of a tenant", .help = "Pyroscope's tenant (X-Scope-OrgID)"},
    {TARGETED, '\0', "ca-file", OPTION_TEXT, OPTION_FIELD(push.ca_file), .value = "FILE",
        .allowed = "a file of certificates (PEM)", .help = "certificates to trust, instead of the system's"},
    {TARGETED, '\0', "label", OPTION_SET, .set = set_label, .value = "K=V",
        .allowed = "NAME=VALUE, both not empty, at most 12 times",
        .help = "a label of the series at the server; repeatable"},
    {COMMAND_PUSH, '\0', "types", OPTION_TEXT, OPTION_FIELD(push.types), .value = "LIST",
        .allowed = "sample types separated by commas, for example inuse_space,inuse_objects",
        .help = "only these sample types, for example\n"
                "inuse_space,inuse_objects"},
    {COMMAND_PUSH, '\0', "timeout", OPTION_TIME, OPTION_FIELD(push.timeout_ns), .least = MS,
        .most = 3600000 * MS, .value = "TIME", .allowed = "1ms to 1h with the unit, for example 30s",
        .help = "time to deliver one profile, default 30s; or, with\n"
                "follow, for one request, default 10s"},
    {COMMAND_PUSH, '\0', "dry-run", OPTION_FLAG, OPTION_FIELD(push.dry_run),
        .help = "send nothing; print labels, sizes and what would\n"
                "be cut to the server's limits"},
    {COMMAND_PUSH, 'q', "quiet", OPTION_SET, .set = options_set_quiet,
        .help = "report only what could not be sent"},
    {COMMAND_PUSH, 'v', "verbose", OPTION_SET, .set = options_set_verbose,
        .help = "report every profile, and every further attempt"},
};

/* ---- serve, and record --listen */

#define ADDRESSES "ADDRESS:PORT such as 127.0.0.1:7337 or [::1]:7337, or unix:PATH, at most 8 times"

/* heaptap-serve checks the address itself. */
static int set_listen(struct options *options, const char *value)
{
	const char *colon = strrchr(value, ':');

	if (!colon || !colon[1] || options->serve.listen_count == OPTION_LISTEN_MAX)
		return -EINVAL;
	options->serve.listen[options->serve.listen_count++] = value;
	return 0;
}

static const struct option serve_rows[] = {
    OPTION_HEADING("in a browser"),
    {COMMAND_SERVE, '\0', "listen", OPTION_SET, .set = set_listen, .value = "ADDRESS", .allowed = ADDRESSES,
        .help = "where to listen: ADDRESS:PORT, default\n"
                "127.0.0.1:7337, or unix:PATH; repeatable"},
    {COMMAND_SERVE, '\0', "token-file", OPTION_TEXT, OPTION_FIELD(serve.token_file), .value = "FILE",
        .allowed = "the name of a file with one line",
        .help = "the token that clients must show (Authorization:\n"
                "Bearer); needed where other machines can connect"},
    {COMMAND_SERVE, 'q', "quiet", OPTION_SET, .set = options_set_quiet, .help = "no line at the start"},
    {COMMAND_RECORD, '\0', "listen", OPTION_SET, .set = set_listen, .value = "ADDRESS", .allowed = ADDRESSES,
        .common = COMMAND_RECORD,
        .help = "show this session in a browser, and to pprof\n"
                "and scrapers, at ADDRESS:PORT or unix:PATH"},
};

/* ---- daemon, enable and disable */

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

#define ENABLING (COMMAND_ENABLE | COMMAND_DISABLE)

static int set_root(struct options *options, const char *value)
{
	if (!*value)
		return -EINVAL;
	options->enable.root = value;
	return 0;
}

static int set_library(struct options *options, const char *value)
{
	if (*value != '/' || strlen(value) >= PATH_MAX)
		return -EINVAL;
	options->enable.library = value;
	return 0;
}

static const struct option enable_rows[] = {
    {COMMAND_ENABLE, '\0', "now", OPTION_FLAG, OPTION_FIELD(enable.now),
        .help = "remove the file `off` beside the control socket:\n"
                "what disable --now has stopped goes on"},
    {COMMAND_DISABLE, '\0', "now", OPTION_FLAG, OPTION_FIELD(enable.now),
        .help = "make the file `off` beside the control socket: the\n"
                "daemon stops sampling everything within a second"},
    {ENABLING, '\0', "root", OPTION_SET, .set = set_root, .value = "DIR", .allowed = "a folder",
        .help = "change the files below DIR, as for an image that\n"
                "is being built; systemd is not told to reload"},
    {ENABLING, '\0', "library", OPTION_SET, .set = set_library, .value = "PATH",
        .allowed = "the absolute path of libheaptap.so; with --root as programs of the image see it",
        .help = "the library to load; default: the library that\n"
                "belongs to this heaptap, or, with --root, the one\n"
                "that is installed in the image"},
};

/* ---- all of them */

/* Options that several commands have. */
static const struct option shared_rows[] = {
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

#define TABLE(name) static const struct option_table options_##name = {name##_rows, ARRAY_COUNT(name##_rows)}

TABLE(snapshot);
TABLE(push);
TABLE(serve);
TABLE(daemon);
TABLE(enable);
TABLE(shared);

#undef TABLE

const struct option_table *const options_tables[] = {&options_record, &options_snapshot, &options_read,
    &options_push, &options_serve, &options_daemon, &options_enable, &options_shared, NULL};

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

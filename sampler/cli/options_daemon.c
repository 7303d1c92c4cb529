/* SPDX-License-Identifier: Apache-2.0 */
/* The options of the daemon, of the commands that ask it, and of those that bring its library to programs. */
#include "sampler/cli/options.h"

#include "sampler/cli/command.h"
#include "sampler/cli/options_rows.h"
#include "sampler/control/control_path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define ENABLING (COMMAND_ENABLE | COMMAND_DISABLE)

static int set_socket(struct options *options, const char *value)
{
	if (!*value || strlen(value) >= CONTROL_PATH_BYTES)
		return -EINVAL;
	options->socket = value;
	return 0;
}

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

static const struct option rows[] = {
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
    {COMMAND_DAEMON | COMMAND_STATUS | COMMAND_SNAPSHOT | COMMAND_DOCTOR | COMMAND_SERVE | ENABLING, '\0',
        "socket", OPTION_SET, .set = set_socket, .value = "PATH", .allowed = "a path of at most 107 bytes",
        .help = "the daemon's control socket, default\n"
                "$HEAPTAP_SOCKET or /run/heaptap/control (a user's\n"
                "own: $XDG_RUNTIME_DIR/heaptap/control, without\n"
                "that variable /tmp/heaptap-UID/control)"},
    {COMMAND_SNAPSHOT, '\0', "service", OPTION_TEXT, OPTION_FIELD(service), .value = "NAME",
        .allowed = "the name of a service, as `heaptap status` shows it",
        .help = "every process of a service of the daemon"},
    {COMMAND_ENABLE, '\0', "now", OPTION_FLAG, OPTION_FIELD(enable.now),
        .help = "remove the file `off` beside the control socket:\n"
                "what disable --now has stopped goes on"},
    {COMMAND_DISABLE, '\0', "now", OPTION_FLAG, OPTION_FIELD(enable.now),
        .help = "make the file `off` beside the control socket: the\n"
                "daemon stops sampling everything within a second"},
    {ENABLING, '\0', "root", OPTION_SET, .set = set_root, .value = "DIR", .allowed = "a folder",
        .help = "change the files below DIR, as for an image that\n"
                "is being built; nothing is tried or reloaded"},
    {ENABLING, '\0', "library", OPTION_SET, .set = set_library, .value = "PATH",
        .allowed = "the absolute path of libheaptap.so; with --root as programs of the image see it",
        .help = "the library to load, default: the one of this\n"
                "heaptap; with --root its path in the image"},
};

const struct option_table options_daemon = {rows, sizeof(rows) / sizeof(rows[0])};

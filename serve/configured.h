/* SPDX-License-Identifier: Apache-2.0 */
/* What `[daemon]` of the user's configuration file says of the web side, where the command line does not. */
#ifndef SERVE_CONFIGURED_H
#define SERVE_CONFIGURED_H

#include "serve/command_line.h"

#include "pprof/service/daemon_section.h"

#include <stddef.h>

/* Reads the file; none is no error. 0, or -errno with "FILE:LINE: what is wrong" in error. *section is due to
 * daemon_section_fini() in any case. */
int configured_read(struct daemon_section *section, char *error, size_t error_bytes);

/* Takes `listen` and `token-file` where the line has none of its own; the line borrows from the section. */
void configured_listen(struct command_line *line, const struct daemon_section *section);
void configured_token(struct command_line *line, const struct daemon_section *section);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* heaptap's configuration file. Each program reads its own sections. */
#ifndef PPROF_STORE_CONFIG_FILE_H
#define PPROF_STORE_CONFIG_FILE_H

#include "pprof/text/ini_text.h"

enum { CONFIG_FILE_BYTES_MAX = 1 << 20 };

/* ini_text_parse() of a file. 0, or -errno with one line in `error`: "FILE:LINE: what is wrong", or why the
 * file cannot be read. */
int config_file_read(const struct ini_text_reader *reader, const char *path, char *error, size_t error_bytes);

#endif

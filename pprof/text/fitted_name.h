/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function's name in a given number of columns. What is too long loses the folders of its file first, then
 * the scopes around the function, from the left; only then the middle of what is left.
 *
 *	py::_call_soon:/usr/lib/python3.12/asyncio/events.py	py::_call_soon:.../asyncio/events.py
 *	keepUpload /srv/app/dist/store.js:18:20			keepUpload .../store.js:18:20
 *	gw::detail::RouteCache::resolve				...RouteCache::resolve
 */
#ifndef PPROF_TEXT_FITTED_NAME_H
#define PPROF_TEXT_FITTED_NAME_H

#include <stddef.h>

/* dots stand for what is left out: "..." or one character for it. Names are valid UTF-8, of which each
 * character counts as one column. What has no room in text_bytes is cut off, too; 4 bytes a column are always
 * enough. */
void fitted_name(const char *name, size_t columns, const char *dots, char *text, size_t text_bytes);

#endif

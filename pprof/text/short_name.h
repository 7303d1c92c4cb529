/* SPDX-License-Identifier: Apache-2.0 */
/* Shorter forms of a function's name, for people: without its arguments, and in a given number of columns. */
#ifndef PPROF_TEXT_SHORT_NAME_H
#define PPROF_TEXT_SHORT_NAME_H

#include <stddef.h>

/*
 * The short form of a function's name, for people: without template arguments, parameters and return type.
 *
 *	std::map<int, std::vector<char> >::operator[]		std::map::operator[]
 *	void app::load<int>(int const&)				app::load
 *	f(int)::{lambda(int)#1}::operator()<int>(int) const	f::{lambda(int)#1}::operator()
 *	<alloc::vec::Vec<u8> as core::clone::Clone>::clone	<alloc::vec::Vec as core::clone::Clone>::clone
 *	JS:*loadUsers /srv/load.js:3:1				loadUsers /srv/load.js:3:1
 *	void java.util.zip.Inflater.<init>(boolean)		java.util.zip.Inflater.<init>
 *
 * What is part of the name stays: operators with < and > in them, (anonymous namespace), lambdas, Rust's
 * <T as Trait>, {{closure}} and <impl T for U>. Names of other languages stay as they are, and so does a name
 * whose brackets do not match: it may be anything. Longer names are not looked at, so that the time is
 * bounded.
 */
enum { SHORT_NAME_MOST_BYTES = 1 << 16 };

/* text has room for length + 1 bytes and does not overlap name. Returns the length of the short form, without
 * its final NUL: never more than length, and never 0 unless length is. */
size_t short_name(const char *name, size_t length, char *text);

/*
 * A function's name in a given number of columns. What is too long loses the folders of its file first, then
 * the scopes around the function, from the left; only then the middle of what is left.
 *
 *	py::_call_soon:/usr/lib/python3.12/asyncio/events.py	py::_call_soon:.../asyncio/events.py
 *	keepUpload /srv/app/dist/store.js:18:20			keepUpload .../store.js:18:20
 *	gw::detail::RouteCache::resolve				...RouteCache::resolve
 *
 * dots stand for what is left out: "..." or one character for it. Names are valid UTF-8, of which each
 * character counts as one column. What has no room in text_bytes is cut off, too; 4 bytes a column are always
 * enough.
 */
void short_name_fit(const char *name, size_t columns, const char *dots, char *text, size_t text_bytes);

#endif

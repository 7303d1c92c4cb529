/* SPDX-License-Identifier: Apache-2.0 */
/* arm64: qemu-aarch64 runs this test, too */
/* What heaptap-serve makes of a request's first line and headers, and of its own addresses and token. */
#include "serve/client.h"
#include "serve/listen_address.h"
#include "serve/request.h"
#include "serve/route.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void parameters_are_read_as_go_reads_them(void **state)
{
	struct parameters parameters;

	assert_int_equal(
	    parameters_parse(&parameters, "a=1&a=2&b=x+y%21&c&d=%zz&e=1;f=2&=g&h=%00&i%20j=k"), 0);
	assert_string_equal(parameters_get(&parameters, "a"), "1");
	assert_string_equal(parameters_get(&parameters, "b"), "x y!");
	assert_string_equal(parameters_get(&parameters, "c"), "");
	assert_null(parameters_get(&parameters, "d"));
	assert_null(parameters_get(&parameters, "e"));
	assert_null(parameters_get(&parameters, "f"));
	assert_string_equal(parameters_get(&parameters, "h"), "\xef\xbf\xbd");
	assert_string_equal(parameters_get(&parameters, "i j"), "k");
	parameters_fini(&parameters);
}

static void so_many_parameters_are_read(void **state)
{
	char text[4096] = "";
	struct parameters parameters;

	for (int i = 0; i < 2 * PARAMETERS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "p%d=%d&", i, i);
	assert_int_equal(parameters_parse(&parameters, text), 0);
	assert_int_equal(parameters.count, PARAMETERS_MAX);
	assert_null(parameters_get(&parameters, "p64"));
	parameters_fini(&parameters);
}

static void integers_are_those_of_strconv(void **state)
{
	static const struct {
		const char *text;
		int err;
		int64_t number;
	} cases[] = {{"0", 0, 0}, {"-12", 0, -12}, {"+7", 0, 7}, {"9223372036854775807", 0, INT64_MAX},
	    {"-9223372036854775808", 0, INT64_MIN}, {"9223372036854775808", -ERANGE, INT64_MAX},
	    {"-99999999999999999999", -ERANGE, INT64_MIN}, {"", -EINVAL, 0}, {"-", -EINVAL, 0},
	    {"1x", -EINVAL, 0}, {" 1", -EINVAL, 0}, {"1_000", -EINVAL, 0},
	    {"99999999999999999999x", -EINVAL, 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t number = 1;

		assert_int_equal(parameters_integer(cases[i].text, &number), cases[i].err);
		assert_int_equal(number, cases[i].number);
	}
}

struct expected {
	const char *target, *endpoint;
	enum route_scope scope;
	pid_t pid;
	const char *service;
};

static void a_path_leads_where_it_says(void **state)
{
	static const char nowhere[] = "**";
	static const struct expected cases[] = {
	    {"/", "/", ROUTE_ANY, 0, ""},
	    {"/page.css", "/*", ROUTE_ANY, 0, ""},
	    {"/a/page.css", nowhere, ROUTE_ANY, 0, ""},
	    {"/debug/pprof", "/debug/pprof", ROUTE_ANY, 0, ""},
	    {"/debug/pprof/", "/debug/pprof/", ROUTE_ANY, 0, ""},
	    {"/debug/pprof/heap?gc=1", "/debug/pprof/heap", ROUTE_ANY, 0, ""},
	    {"/debug/pprof/a/b", "/debug/pprof/**", ROUTE_ANY, 0, ""},
	    {"/debug/pprof/heap?pid=12", "/debug/pprof/heap", ROUTE_PID, 12, ""},
	    {"/debug/pprof/heap?pid=x", "/debug/pprof/heap", ROUTE_PID, 0, ""},
	    {"/debug/pprof/heap?service=a%2Fb", "/debug/pprof/heap", ROUTE_SERVICE, 0, "a/b"},
	    {"/pid/4711/debug/pprof/allocs", "/debug/pprof/allocs", ROUTE_PID, 4711, ""},
	    {"/pid/4711/debug/pprof", "/debug/pprof", ROUTE_PID, 4711, ""},
	    {"/pid/2147483648/debug/pprof/heap", nowhere, ROUTE_PID, 0, ""},
	    {"/pid//debug/pprof/heap", nowhere, ROUTE_ANY, 0, ""},
	    {"/pid/-1/debug/pprof/heap", nowhere, ROUTE_PID, 0, ""},
	    {"/pid/1/", nowhere, ROUTE_PID, 1, ""},
	    {"/pid/1/metrics", nowhere, ROUTE_PID, 1, ""},
	    {"/service/a%20b/debug/pprof/heap", "/debug/pprof/heap", ROUTE_SERVICE, 0, "a b"},
	    {"/service/ns/web/debug/pprof/heap", "/debug/pprof/heap", ROUTE_SERVICE, 0, "ns/web"},
	    {"/pid/1/api/v1/top", nowhere, ROUTE_PID, 1, ""},
	    {"/pprof/heap", "/pprof/**", ROUTE_ANY, 0, ""},
	    {"/pid/1/pprof/heap", "/pprof/**", ROUTE_PID, 1, ""},
	    {"/api/v1/top?service=x", "/api/v1/top", ROUTE_SERVICE, 0, "x"},
	    {"/api/v1/", "/api/v1/**", ROUTE_ANY, 0, ""},
	    {"/metrics", "/metrics", ROUTE_ANY, 0, ""},
	    {"/sd", "/sd", ROUTE_ANY, 0, ""},
	    {"/healthz", "/healthz", ROUTE_ANY, 0, ""},
	    {"http://h:1/metrics", "/metrics", ROUTE_ANY, 0, ""},
	    {"http://h", "/", ROUTE_ANY, 0, ""},
	    {"/../etc/passwd", nowhere, ROUTE_ANY, 0, ""},
	    {"/%2e%2e/etc/passwd", nowhere, ROUTE_ANY, 0, ""},
	    {"/page.css%00.html", "/*", ROUTE_ANY, 0, ""},
	    {"//etc/passwd", nowhere, ROUTE_ANY, 0, ""},
	    {"/a%0ab", nowhere, ROUTE_ANY, 0, ""},
	    {"/%ff", nowhere, ROUTE_ANY, 0, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct route route;
		const struct endpoint *endpoint;

		assert_int_equal(route_parse(&route, cases[i].target), 0);
		endpoint = endpoint_find(&route);
		if (strcmp(endpoint->path, cases[i].endpoint) != 0)
			print_message("%s\n", cases[i].target);
		assert_string_equal(endpoint->path, cases[i].endpoint);
		assert_int_equal(route.scope, cases[i].scope);
		assert_int_equal(route.pid, cases[i].pid);
		assert_string_equal(route.service, cases[i].service);
		route_fini(&route);
	}
}

static void what_is_no_target_is_refused(void **state)
{
	static const char *const bad[] = {
	    "", "*", "debug/pprof/heap", "ftp://h/", "/%", "/%4", "?a=b", "/?\r", "/a\tb", "http://h\x7f/"};
	struct route route;
	char *large = malloc(2 * ROUTE_TARGET_BYTES);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(route_parse(&route, bad[i]), -EINVAL);
	memset(large, 'a', 2 * ROUTE_TARGET_BYTES);
	large[0] = '/';
	large[2 * ROUTE_TARGET_BYTES - 1] = '\0';
	assert_int_equal(route_parse(&route, large), -EINVAL);
	free(large);
}

static void only_what_holds_no_data_is_open(void **state)
{
	static const char *const closed[] = {"/debug/pprof/", "/debug/pprof/heap", "/pid/1/debug/pprof/heap",
	    "/pprof/heap", "/api/v1/processes", "/api/v1/openapi.json", "/metrics", "/sd", "/a/page.js"};
	static const char *const open[] = {"/", "/page.js", "/healthz"};
	struct route route;

	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
		assert_int_equal(route_parse(&route, closed[i]), 0);
		assert_false(endpoint_find(&route)->access == ENDPOINT_OPEN);
		route_fini(&route);
	}
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		assert_int_equal(route_parse(&route, open[i]), 0);
		assert_true(endpoint_find(&route)->access == ENDPOINT_OPEN);
		route_fini(&route);
	}
}

static void a_foreign_name_in_host_is_seen(void **state)
{
	static const char *const local[] = {"localhost", "LOCALHOST:80", "127.0.0.1:7337", "10.0.0.1",
	    "[::1]", "[::1]:7337", "a.localhost", "box", "box:7337", "127.0.0.2", "[fe80::1]"};
	static const char *const foreign[] = {"", "example.org", "example.org:80", "localhost.example.org",
	    "127.0.0.1.example.org", "[::1", "[x]", "localhost:80x", "box.example.org", "notlocalhost", ".",
	    "evil:80:80", "0.0.0.0", "0.0.0.0:80", "[::]", "[::]:80", "[::ffff:127.0.0.1]", "[::ffff:0:0]",
	    "localhost@evil", "localhost:80@evil"};

	assert_true(client_host_is_local(NULL, "box"));
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		assert_true(client_host_is_local(local[i], "box"));
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		assert_false(client_host_is_local(foreign[i], "box"));
	/* a machine called by a name of the internet's is rebound as easily as any */
	assert_false(client_host_is_local("box.example.org", "box.example.org"));
}

static void a_page_of_another_site_may_only_link_to_ours(void **state)
{
	static const char *const foreign[] = {"cross-site", "same-site", "", "x"};
	static const char *const own[] = {NULL, "none", "same-origin"};

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
		assert_false(client_is_foreign_page(foreign[i], "navigate", "document", true));
		assert_true(client_is_foreign_page(foreign[i], "navigate", "document", false));
		assert_true(client_is_foreign_page(foreign[i], "navigate", "iframe", true));
		assert_true(client_is_foreign_page(foreign[i], "no-cors", "document", true));
		assert_true(client_is_foreign_page(foreign[i], NULL, NULL, true));
	}
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_false(client_is_foreign_page(own[i], "cors", "empty", false));
}

static void a_header_has_no_other_characters(void **state)
{
	static const char *const bad_names[] = {"", "Content-Length ", " Host", "X\t", "A\rB", "Hos\xc3\xa9"};
	static const char *const bad_values[] = {"a\rb", "a\nb", "\x7f", "\x1b[m"};

	assert_true(client_is_header_name("Content-Length") && client_is_header_name("x_y!#$%&'*+.^`|~"));
	assert_true(client_is_header_value("") && client_is_header_value("a \t\xc3\xa9 \"(;"));
	for (size_t i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++)
		assert_false(client_is_header_name(bad_names[i]));
	for (size_t i = 0; i < sizeof(bad_values) / sizeof(bad_values[0]); i++)
		assert_false(client_is_header_value(bad_values[i]));
}

static void an_absolute_target_says_its_host(void **state)
{
	static const struct {
		const char *target, *host, *path, *query;
	} cases[] = {
	    {"/metrics?a=http://h/", NULL, "/metrics", "a=http://h/"},
	    {"http://h:1/metrics?a", "h:1", "/metrics", "a"},
	    {"HTTPS://h", "h", "/", ""},
	    {"http://h?a", "h", "/", "a"},
	    {"http:///x", "", "/x", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct route route;

		assert_int_equal(route_parse(&route, cases[i].target), 0);
		if (cases[i].host)
			assert_string_equal(route.host, cases[i].host);
		else
			assert_null(route.host);
		assert_string_equal(route.path, cases[i].path);
		assert_string_equal(route.query, cases[i].query);
		route_fini(&route);
	}
}

static void only_the_token_opens(void **state)
{
	struct token token, none = {.text = ""};

	assert_int_equal(client_token_parse(&token, "0123456789abcdef\n", 17), 0);
	assert_true(client_token_is_shown(&token, "Bearer 0123456789abcdef"));
	assert_true(client_token_is_shown(&token, "bearer  0123456789abcdef"));
	assert_false(client_token_is_shown(&token, NULL));
	assert_false(client_token_is_shown(&token, ""));
	assert_false(client_token_is_shown(&token, "Bearer "));
	assert_false(client_token_is_shown(&token, "Bearer 0123456789abcde"));
	assert_false(client_token_is_shown(&token, "Bearer 0123456789abcdef0"));
	assert_false(client_token_is_shown(&token, "Bearer 0123456789abcdef0123456789abcdef"));
	assert_false(client_token_is_shown(&token, "Bearer 0123456789abcdeg"));
	assert_false(client_token_is_shown(&token, "Bearer 0123456789abcdef x"));
	assert_false(client_token_is_shown(&token, "Basic 0123456789abcdef"));
	assert_false(client_token_is_shown(&token, "0123456789abcdef"));
	assert_true(client_token_is_shown(&none, NULL));
	assert_int_equal(client_token_parse(&token, "short\n", 6), -EINVAL);
	assert_int_equal(client_token_parse(&token, "0123456789 abcdef", 17), -EINVAL);
	assert_int_equal(client_token_parse(&token, "0123456789abcdef\n\nx", 19), -EINVAL);
}

static void an_address_is_local_or_not(void **state)
{
	static const struct {
		const char *text, *shown;
		bool local;
	} good[] = {{"127.0.0.1:7337", "127.0.0.1:7337", true}, {"localhost:1", "127.0.0.1:1", true},
	    {"127.9.9.9:0", "127.9.9.9:0", true}, {"[::1]:80", "[::1]:80", true},
	    {"0.0.0.0:80", "0.0.0.0:80", false}, {":80", "0.0.0.0:80", false}, {"[::]:80", "[::]:80", false},
	    {"10.1.2.3:80", "10.1.2.3:80", false}, {"unix:/tmp/s", "unix:/tmp/s", true},
	    {"[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", true},
	    {"[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.1]:80", false}};
	static const char *const bad[] = {"", "80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
	    "127.0.0.1:65536", "127.0.0.1:-1", "::1:80", "[::1]", "[::1", "host:80", "unix:", "127.1:80",
	    "127.0.0.1:+1"};
	struct listen_address address;
	char error[256], text[LISTEN_ADDRESS_BYTES];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(listen_address_parse(&address, good[i].text, error, sizeof(error)), 0);
		listen_address_text(&address, text);
		assert_string_equal(text, good[i].shown);
		assert_int_equal(address.is_local, good[i].local);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(listen_address_parse(&address, bad[i], error, sizeof(error)), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(parameters_are_read_as_go_reads_them),
	    cmocka_unit_test(so_many_parameters_are_read),
	    cmocka_unit_test(integers_are_those_of_strconv),
	    cmocka_unit_test(a_path_leads_where_it_says),
	    cmocka_unit_test(what_is_no_target_is_refused),
	    cmocka_unit_test(only_what_holds_no_data_is_open),
	    cmocka_unit_test(a_foreign_name_in_host_is_seen),
	    cmocka_unit_test(a_page_of_another_site_may_only_link_to_ours),
	    cmocka_unit_test(a_header_has_no_other_characters),
	    cmocka_unit_test(an_absolute_target_says_its_host),
	    cmocka_unit_test(only_the_token_opens),
	    cmocka_unit_test(an_address_is_local_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

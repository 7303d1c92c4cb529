/* SPDX-License-Identifier: Apache-2.0 */
/* What processes are called, by the command lines of real programs; and what is never taken from one. */
#include "sampler/linux/process_name.h"
#include "pprof/table/array.h"

#include "pprof/text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE(text) text, sizeof(text) /* with the final 0, as the kernel has it */

struct name_case {
	const char *program, *line;
	size_t bytes;
	const char *name;
};

static void check(const struct name_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char name[PROCESS_NAME_BYTES];

		process_name_make(name, cases[i].program, cases[i].line, cases[i].bytes);
		assert_string_equal(name, cases[i].name);
	}
}

static void scripts_and_modules(void **state)
{
	static const struct name_case cases[] = {
	    {"python3.11", LINE("python3.11\0/usr/bin/gunicorn\0app:app"), "python3.11 gunicorn app:app"},
	    {"python3.11",
	        LINE("/srv/venv/bin/python3\0/srv/venv/bin/gunicorn\0-w\0003\0--bind\0host:x\0app:app"),
	        "python3.11 gunicorn app:app"},
	    {"python3", LINE("python3\0/usr/bin/uvicorn\0--reload\0shop.main:app\0--port\00080"),
	        "python3 uvicorn shop.main:app"},
	    {"python3", LINE("python3\0-X\0perf\0-u\0-m\0uvicorn\0app:app"), "python3 -m uvicorn app:app"},
	    {"python3", LINE("python3\0-Im\0http.server"), "python3 -m http.server"},
	    {"python3", LINE("python3\0-mhttp.server\0secret"), "python3 -m http.server"},
	    {"python3", LINE("python3\0-W\0error\0manage.py\0runserver\0--token=x"),
	        "python3 manage.py runserver"},
	    {"python3", LINE("python3\0-Werror\0./work.py"), "python3 work.py"},
	    {"python3", LINE("python3\0-uc\0password = 1\0x"), "python3"},
	    {"python3.12", LINE("python3.12\0/usr/bin/celery\0-A\0shop\0worker\0-l\0info"),
	        "python3.12 celery worker"},
	    {"pypy3", LINE("pypy3\0/srv/shop/main.py"), "pypy3 shop/main.py"},
	    {"node", LINE("node\0--perf-basic-prof\0-r\0dotenv/config\0dist/server.js"),
	        "node dist/server.js"},
	    {"node", LINE("/usr/bin/node\0/srv/app/dist/server.js\000080"), "node dist/server.js"},
	    {"node", LINE("node\0-e\0secret()"), "node"},
	    {"java", LINE("java\0-Xmx1g\0-Dpassword=x\0-jar\0/opt/shop/x.jar"), "java shop/x.jar"},
	    {"java", LINE("java\0-jar\0x.jar\0--token\0abc"), "java x.jar"},
	    {"java", LINE("java\0-cp\0a.jar:b.jar\0kafka.Kafka\0/etc/server.properties"),
	        "java kafka.Kafka server.properties"},
	    {"java", LINE("java\0--module-path\0mods\0-m\0shop/shop.Main"), "java -m shop/shop.Main"},
	    {"ruby3.1", LINE("ruby3.1\0-I\0lib\0bin/rails\0server"), "ruby3.1 rails server"},
	    {"perl", LINE("perl\0-MData::Dumper\0-w\0/usr/bin/pg_ctlcluster\00015"), "perl pg_ctlcluster"},
	    {"perl", LINE("perl\0-we\0secret"), "perl"},
	    {"php8.2", LINE("php8.2\0-d\0x=y\0artisan\0queue:work"), "php8.2 artisan queue:work"},
	    {"bash", LINE("bash\0-ec\0mysql -psecret"), "bash"},
	    {"sh", LINE("/bin/sh\0./run.sh"), "sh run.sh"},
	};

	check(cases, ARRAY_COUNT(cases));
}

static void other_programs(void **state)
{
	static const struct name_case cases[] = {
	    {"redis-server", LINE("redis-server\0/etc/redis/redis.conf"), "redis-server redis.conf"},
	    {"postgres", LINE("/usr/lib/postgresql/15/bin/postgres\0-D\0/var/lib/x"), "postgres"},
	    {"leaky", LINE("./leaky\0003000\00064"), "leaky"},
	    {"true", LINE("true"), "true"},
	    {"kthread", "", 0, "kthread"},
	    {"dotnet", LINE("dotnet\0shop.dll"), "dotnet shop.dll"},
	    {"pythonic", LINE("pythonic\0-c\0x"), "pythonic"},
	};

	check(cases, ARRAY_COUNT(cases));
}

static void titles(void **state)
{
	static const struct name_case cases[] = {
	    {"nginx", LINE("nginx: worker process\0\0\0\0"), "nginx: worker process"},
	    {"nginx", LINE("nginx: master process /usr/sbin/nginx -g daemon off;"), "nginx: master process"},
	    {"postgres", LINE("postgres: 15/main: walwriter "), "postgres: 15/main: walwriter"},
	    {"postgres", LINE("postgres: 15/main: bob shop [local] SELECT"),
	        "postgres: 15/main: bob shop [local]"},
	    {"python3.11", LINE("gunicorn: worker [app:app]\0\0\0"), "python3.11 gunicorn: worker [app:app]"},
	    {"python3.11", LINE("worker-1\0\0\0\0"), "python3.11 worker-1"},
	    {"python3.11", LINE("my api worker\0\0\0\0"), "python3.11 my api worker"},
	    {"python3.11", LINE("my api worker"), "python3.11 my api worker"},
	    {"php-fpm8.2", LINE("php-fpm: pool www\0\0\0"), "php-fpm: pool www"},
	    {"redis-server", LINE("redis-server *:6379\0\0\0\0"), "redis-server *:6379"},
	    {"redis-server", LINE("/usr/bin/redis-server 127.0.0.1:6379\0\0\0"),
	        "redis-server 127.0.0.1:6379"},
	    {"server", LINE("server --password=x\0\0"), "server"},
	    {"bash", LINE("-bash"), "bash"},
	    {"bash", LINE("-bash\0\0"), "bash"},
	    {"My App", LINE("/opt/My App/My App\0--x"), "My App"},
	};

	check(cases, ARRAY_COUNT(cases));
}

/* What may be a password, a token or an account stays where it is. */
static void secrets(void **state)
{
	static const struct name_case cases[] = {
	    {"curl", LINE("curl\0https://bob:secret@host/"), "curl"},
	    {"mysql", LINE("mysql\0--password=secret\0db"), "mysql"},
	    {"tool", LINE("tool\0-p\0secret"), "tool"},
	    {"tool", LINE("tool\0bob@host"), "tool"},
	    {"tool", LINE("tool\0TOKEN=secret"), "tool"},
	    {"tool", LINE("tool\0eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9eyJzdWIiOiIxMjM0NTY3ODkwI"), "tool"},
	    {"python3", LINE("python3\0run.py\0--token\0secret\0a:b"), "python3 run.py"},
	    {"python3", LINE("python3\0/usr/bin/gunicorn\0--user\0bob:secret"), "python3 gunicorn"},
	    {"node", LINE("node\0server.js\0https://u:p@host"), "node server.js"},
	    {"curl", LINE("curl\0https://hooks.test/secret"), "curl"},
	};
	check(cases, ARRAY_COUNT(cases));
}

static void hostile_lines(void **state)
{
	char line[PROCESS_NAME_LINE_BYTES], name[PROCESS_NAME_BYTES];

	/* All of it at once, at every length: valid, bounded, nothing for a terminal. */
	for (size_t i = 0; i < sizeof(line); i++)
		line[i] = (char)(i * 7919 % 251);
	for (size_t bytes = 0; bytes < 600; bytes++) {
		process_name_make(name, bytes % 2 ? "python3" : "prog", line, bytes);
		assert_true(strlen(name) < sizeof(name));
		assert_int_equal(utf8_valid_prefix(name, strlen(name)), strlen(name));
		for (const char *c = name; *c; c++)
			assert_int_equal(utf8_control(c), 0);
	}
	process_name_make(name, "prog", LINE("prog\0a\033[31mb\n\xff\xe2\x80\xae"));
	assert_string_equal(name,
	    "prog a?[31mb??"
	    "???");
	/* Cut between characters. */
	memset(line, 'a', 40);
	strcpy(line + 40, ": ");
	for (size_t i = 0; i < 40; i++)
		memcpy(line + 42 + 2 * i, "\xc3\xa4", 3);
	process_name_make(name, "prog", line, strlen(line) + 1);
	assert_true(strlen(name) < sizeof(name) && strlen(name) > sizeof(name) - 4);
	assert_null(strchr(name, '?'));
	/* A program's name too is its own. */
	process_name_make(name, "\033]0;x\a", NULL, 0);
	assert_string_equal(name, "?]0;x?");
	memset(line, 'p', 300);
	line[300] = '\0';
	process_name_make(name, line, "", 0);
	assert_int_equal(strlen(name), sizeof(name) - 1);
}

static void of_a_process(void **state)
{
	char name[PROCESS_NAME_BYTES];

	process_name_read(name, getpid(), "process_name");
	assert_string_equal(name, "process_name");
	process_name_read(name, 0x7ffffffe, "gone");
	assert_string_equal(name, "gone");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(scripts_and_modules),
	    cmocka_unit_test(other_programs),
	    cmocka_unit_test(titles),
	    cmocka_unit_test(secrets),
	    cmocka_unit_test(hostile_lines),
	    cmocka_unit_test(of_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

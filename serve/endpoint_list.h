/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every address that the server answers: one row an endpoint. The first row that matches a path answers it.
 *
 *     ROW(path, reach, methods, access, needs, errors, answer, parameters)
 *
 *   path        a last part "*" matches any one part, and "**" anything that follows
 *   reach       ALONE; PROCESS: the path may also stand behind /pid/PID or /service/NAME
 *   methods     GET (and HEAD), POST, or GET_POST; all other methods get 405
 *   access      OPEN: no token is needed, since the answer holds no data; READ: the token is needed, if the
 *               server has one; TOKEN: there is no answer at all where the server has no token
 *   needs       what the broker is asked for first: NOTHING; PROCESSES: the lists of all samplers, which may
 *               be a second old; FILES: these, and the profile files below the folders of samplers
 *   errors      how a refusal is written: as a LINE, like Go's handlers, or as JSON
 *   answer      void answer(struct request *request): makes request->reply, and then or later calls
 *               request_finish() (request.h)
 *   parameters  that answer() reads, in the words of openapi.json; a request's other parameters are ignored
 *
 * To add an endpoint: write a row here and its answer() in a .c file that includes this header. An endpoint
 * of /api/v1 has a path in openapi.json too.
 */
#ifndef SERVE_ENDPOINT_LIST_H
#define SERVE_ENDPOINT_LIST_H

/* Parameters that several endpoints have. */
#define PROCESS_OF "pid service "
#define STATE_OF   "id " PROCESS_OF "at state "
#define FILTERS    "focus ignore hide module thread size age "
#define TABLE      "sort lines full-names all-frames " FILTERS

/* clang-format off */
#define ENDPOINT_LIST(ROW) \
	ROW("/",                       ALONE,   GET,      OPEN,  NOTHING,   LINE, answer_page, "") \
	ROW("/healthz",                ALONE,   GET,      OPEN,  NOTHING,   LINE, answer_health, "") \
	ROW("/metrics",                ALONE,   GET,      READ,  PROCESSES, LINE, answer_metrics, "") \
	ROW("/sd",                     ALONE,   GET,      READ,  PROCESSES, LINE, answer_discovery, "") \
	ROW("/*",                      ALONE,   GET,      OPEN,  NOTHING,   LINE, answer_page, "") \
	\
	ROW("/debug/pprof",            PROCESS, GET,      READ,  NOTHING,   LINE, answer_debug_redirect, \
	    PROCESS_OF) \
	ROW("/debug/pprof/",           PROCESS, GET,      READ,  PROCESSES, LINE, answer_debug, PROCESS_OF) \
	ROW("/debug/pprof/heap",       PROCESS, GET,      READ,  PROCESSES, LINE, answer_debug, \
	    PROCESS_OF "seconds debug") \
	ROW("/debug/pprof/allocs",     PROCESS, GET,      READ,  PROCESSES, LINE, answer_debug, \
	    PROCESS_OF "seconds debug") \
	ROW("/debug/pprof/delta_heap", PROCESS, GET,      READ,  PROCESSES, LINE, answer_debug, \
	    PROCESS_OF "client debug") \
	ROW("/debug/pprof/profile",    PROCESS, GET,      READ,  PROCESSES, LINE, answer_debug, \
	    PROCESS_OF "seconds") \
	ROW("/debug/pprof/cmdline",    PROCESS, GET,      READ,  PROCESSES, LINE, answer_debug, PROCESS_OF) \
	ROW("/debug/pprof/symbol",     PROCESS, GET_POST, READ,  PROCESSES, LINE, answer_debug, PROCESS_OF) \
	ROW("/debug/pprof/**",         PROCESS, GET,      READ,  NOTHING,   LINE, answer_debug, "") \
	ROW("/pprof/**",               PROCESS, GET_POST, READ,  NOTHING,   LINE, answer_old_pprof, "") \
	\
	ROW("/api/v1/processes",       ALONE,   GET,      READ,  FILES,     JSON, answer_processes, "") \
	ROW("/api/v1/profiles",        ALONE,   GET,      READ,  FILES,     JSON, answer_profiles, \
	    PROCESS_OF) \
	ROW("/api/v1/timeline",        ALONE,   GET,      READ,  FILES,     JSON, answer_timeline, \
	    "id " PROCESS_OF TABLE) \
	ROW("/api/v1/profile",         ALONE,   GET,      READ,  FILES,     JSON, answer_profile, \
	    STATE_OF FILTERS) \
	ROW("/api/v1/top",             ALONE,   GET,      READ,  FILES,     JSON, answer_view, \
	    STATE_OF "by cum rows " TABLE) \
	ROW("/api/v1/tree",            ALONE,   GET,      READ,  FILES,     JSON, answer_view, \
	    STATE_OF "by inverted threshold layout " TABLE) \
	ROW("/api/v1/leaks",           ALONE,   GET,      READ,  FILES,     JSON, answer_view, \
	    STATE_OF "rows " TABLE) \
	ROW("/api/v1/diff",            ALONE,   GET,      READ,  FILES,     JSON, answer_diff, \
	    "base new service by cum normalize rows layout " TABLE) \
	ROW("/api/v1/growth",          ALONE,   GET,      READ,  FILES,     JSON, answer_growth, \
	    "id " PROCESS_OF "rows " TABLE) \
	ROW("/api/v1/snapshot",        ALONE,   POST,     TOKEN, FILES,     JSON, answer_snapshot, \
	    "id " PROCESS_OF) \
	ROW("/api/v1/openapi.json",    ALONE,   GET,      READ,  NOTHING,   JSON, answer_openapi, "") \
	ROW("/api/v1/**",              ALONE,   GET,      READ,  NOTHING,   JSON, answer_no_view, "") \
	\
	ROW("**",                      PROCESS, GET,      READ,  NOTHING,   LINE, answer_not_found, "")
/* clang-format on */

struct request;

#define DECLARE(path, reach, methods, access, needs, errors, answer, parameters) \
	void answer(struct request *);
ENDPOINT_LIST(DECLARE)
#undef DECLARE

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes log messages: one write(2) for each line, so that lines do not mix. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file_limit.h"
#include "base/sync.h"

#define LINE_BYTES 1024

static const char prefix[] = "verbena: ";
static const char *const level_names[] = { "quiet", "error", "warn", "info",
					   "debug" };

/* This function does not call vb_log(), which would call vb_log_wants()
 * again. */
static void refuse_level(const char *name)
{
	char line[200];
	int len = snprintf(line, sizeof(line),
			   "%sVERBENA_LOG=%.80s is none of off, error, warn, "
			   "info and debug; using warn\n",
			   prefix, name);

	(void)vb_file_write(STDERR_FILENO, line, (size_t)len, -1);
}

static int level_from_environment(void)
{
	const char *name = getenv("VERBENA_LOG");

	if (name && strcmp(name, "off") == 0)
		return LOG_QUIET;
	for (size_t i = 0; name && i < VB_COUNT(level_names); i++)
		if (strcmp(name, level_names[i]) == 0)
			return (int)i;
	if (name && name[0])
		refuse_level(name);
	return LOG_WARN;
}

bool vb_log_wants(enum vb_log_level level)
{
	static atomic_int chosen = -1;
	int now = atomic_load_explicit(&chosen, memory_order_relaxed);

	/* Relaxed: threads that compute the level at the same time get the same
	 * result. */
	if (now < 0) {
		now = level_from_environment();
		atomic_store_explicit(&chosen, now, memory_order_relaxed);
	}
	return level != LOG_QUIET && (int)level <= now;
}

static __thread bool noted;

void vb_log_note(void)
{
	noted = true;
}

bool vb_log_take_note(void)
{
	bool was = noted;

	noted = false;
	return was;
}

void vb_log(enum vb_log_level level, const char *format, ...)
{
	const size_t at = sizeof(prefix) - 1, room = LINE_BYTES - at - 1;
	char line[LINE_BYTES];
	int saved = errno, len, cancel;
	va_list args;

	if (level <= LOG_WARN)
		vb_log_note();
	if (!vb_log_wants(level))
		return;
	memcpy(line, prefix, at);
	va_start(args, format);
	len = vsnprintf(line + at, room, format, args);
	va_end(args);
	if (len >= 0) {
		size_t end = at + VB_MIN((size_t)len, room - 1);

		line[end++] = '\n';
		cancel = vb_cancel_off();
		/* Ignore a failure: if standard error is closed, it cannot be
		 * reported anywhere. */
		if (vb_file_write(STDERR_FILENO, line, end, -1) < 0)
			errno = saved;
		vb_cancel_back(cancel);
	}
	errno = saved;
}

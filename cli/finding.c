/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/finding.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FINDINGS_MOST 128
#define TEXT_MOST     1024
/* A finding keeps up to four texts: the command that mends it, and up to three
 * quoted names in that command. */
#define TEXTS_MOST (4 * FINDINGS_MOST)
/* the characters that no shell takes for anything but themselves */
#define PLAIN_CHARACTERS                                                       \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"       \
	"_./:@%+,-"

struct finding {
	const char *id, *mend;
	enum vb_finding_status status;
	char *text;
};

/* Protects the list: the thread that ends a doctor which takes too long prints
 * it, too. */
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct finding list[FINDINGS_MOST];
static unsigned list_count;

static const char *const status_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_NOTE] = "note",
	[FINDING_WARNING] = "warning",
	[FINDING_PROBLEM] = "problem",
};

/* Keeps @text, which may be NULL, until the process ends. Returns @text, or
 * NULL if the table is full. */
static const char *keep_text(char *text)
{
	/* Texts last as long as the process; leak checkers find them here. */
	static char *texts[TEXTS_MOST];
	static unsigned count;

	if (count == TEXTS_MOST) {
		free(text);
		return NULL;
	}
	texts[count] = text;
	return texts[count++];
}

const char *vb_finding_text(const char *format, ...)
{
	char *text = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&text, format, args);
	va_end(args);
	return keep_text(n < 0 ? NULL : text);
}

const char *vb_finding_quoted(const char *name)
{
	char *text, *to;
	const char *kept;

	if (*name && *name != '-' &&
	    name[strspn(name, PLAIN_CHARACTERS)] == '\0')
		return name;
	/* A quote in the name becomes four characters: '\'' */
	text = malloc(4 * strlen(name) + 3);
	to = text;
	if (text) {
		*to++ = '\'';
		for (; *name; name++)
			to = *name == '\'' ? stpcpy(to, "'\\''")
					   : (*to = *name, to + 1);
		strcpy(to, "'");
	}
	kept = keep_text(text);
	return kept ? kept : "NAME";
}

void vb_finding_add(const char *id, enum vb_finding_status status,
		    const char *mend, const char *format, ...)
{
	char text[TEXT_MOST];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	pthread_mutex_lock(&list_mutex);
	if (list_count < FINDINGS_MOST)
		list[list_count++] =
			(struct finding){ id, mend ? strdup(mend) : NULL,
					  status, strdup(text) };
	pthread_mutex_unlock(&list_mutex);
}

/* Returns the byte, or a question mark for one that could command a terminal or
 * is no ASCII. */
static int printable(char byte)
{
	return byte < 0x20 || byte > 0x7e ? '?' : byte;
}

char *vb_finding_clean(char *text)
{
	for (char *at = text; *at; at++)
		*at = (char)printable(*at);
	return text;
}

/* Writes @text as a JSON string. */
static void put_json(FILE *to, const char *text)
{
	fputc('"', to);
	for (; text && *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', to);
		fputc(printable(*text), to);
	}
	fputc('"', to);
}

static void print_json(FILE *to, enum vb_finding_status worst)
{
	fprintf(to,
		"{\n \"format\": 1,\n \"version\": \"" VB_VERSION
		"\",\n \"status\": \"%s\",\n \"findings\": [",
		status_names[worst]);
	for (unsigned i = 0; i < list_count; i++) {
		fprintf(to, "%s\n  {\"id\": ", i ? "," : "");
		put_json(to, list[i].id);
		fprintf(to, ", \"status\": \"%s\", \"text\": ",
			status_names[list[i].status]);
		put_json(to, list[i].text);
		fprintf(to, ", \"mend\": ");
		if (list[i].mend)
			put_json(to, list[i].mend);
		else
			fprintf(to, "null");
		fputc('}', to);
	}
	fprintf(to, "\n ]\n}\n");
}

static void put_line(FILE *to, const char *text)
{
	for (; text && *text; text++)
		fputc(printable(*text), to);
	fputc('\n', to);
}

static void print_text(FILE *to)
{
	for (unsigned i = 0; i < list_count; i++) {
		fprintf(to, "%-8s%-12s", status_names[list[i].status],
			list[i].id);
		put_line(to, list[i].text);
		if (list[i].mend) {
			fprintf(to, "%20smend: ", "");
			put_line(to, list[i].mend);
		}
	}
}

enum vb_finding_status vb_findings_print(FILE *to, bool json)
{
	enum vb_finding_status worst = FINDING_OK;

	pthread_mutex_lock(&list_mutex);
	for (unsigned i = 0; i < list_count; i++)
		if (list[i].status > worst)
			worst = list[i].status;
	if (json)
		print_json(to, worst);
	else
		print_text(to);
	pthread_mutex_unlock(&list_mutex);
	fflush(to);
	return worst;
}

struct ending {
	vb_time limit;
	bool json;
};

static void *end_late(void *arg)
{
	const struct ending *e = arg;
	struct timespec ts = { (time_t)(e->limit / VB_SEC),
			       (long)(e->limit % VB_SEC) };

	nanosleep(&ts, NULL);
	vb_finding_add("time", FINDING_WARNING, NULL,
		       "the examination took too long; what comes after the "
		       "last line was not examined");
	(void)vb_findings_print(stdout, e->json);
	_exit(EXIT_FAILURE);
}

void vb_findings_end_after(vb_time limit, bool json)
{
	static struct ending e;
	pthread_t thread;

	e = (struct ending){ limit, json };
	if (pthread_create(&thread, NULL, end_late, &e) == 0)
		pthread_detach(thread);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds environment variables that the user has probably mistyped: a name that
 * is nearly one of Verbena's, and a value that the variable does not have. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/defs.h"
#include "cli/commands.h"

extern char **environ;

#define PREFIX	    "VERBENA_"
#define PREFIX_LEN  (sizeof(PREFIX) - 1)
#define LONGEST	    32 /* longer names are none of Verbena's */
#define VALUE_SHOWN 40

/* Returns the number of letters to insert, drop, replace or swap with the next
 * one that turns @a into @b, both of at most LONGEST letters. */
static unsigned distance(const char *a, size_t a_len, const char *b,
			 size_t b_len)
{
	unsigned d[LONGEST + 1][LONGEST + 1];

	for (unsigned i = 0; i <= a_len; i++)
		d[i][0] = i;
	for (unsigned j = 0; j <= b_len; j++)
		d[0][j] = j;
	for (unsigned i = 1; i <= a_len; i++)
		for (unsigned j = 1; j <= b_len; j++) {
			unsigned other =
				d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			d[i][j] = VB_MIN(other,
					 VB_MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] &&
			    d[i][j] > d[i - 2][j - 2] + 1)
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	return d[a_len][b_len];
}

/* Returns the variable whose name is nearly that of @len letters: one letter is
 * wrong, or two in a long name. NULL: there is none. */
static const struct vb_cli_variable *nearly(const char *name, size_t len)
{
	const struct vb_cli_variable *best = NULL;
	unsigned least_wrong = 3;

	for (unsigned i = 0; i < vb_cli_variable_count; i++) {
		const struct vb_cli_variable *v = &vb_cli_variables[i];
		size_t own = strlen(v->name);
		unsigned wrong;

		if (own > LONGEST)
			continue;
		wrong = distance(name, len, v->name, own);
		if (wrong >= least_wrong || (wrong > 1 && own < PREFIX_LEN + 4))
			continue;
		least_wrong = wrong;
		best = v;
	}
	return best;
}

static const struct vb_cli_variable *variable_of(const char *name, size_t len)
{
	for (unsigned i = 0; i < vb_cli_variable_count; i++)
		if (strlen(vb_cli_variables[i].name) == len &&
		    memcmp(vb_cli_variables[i].name, name, len) == 0)
			return &vb_cli_variables[i];
	return NULL;
}

/* May the variable have this value? If its row of the table has words in small
 * letters, the value must be one of them; if the row begins with a capital
 * letter, any value is permitted. */
static bool has_value(const struct vb_cli_variable *v, const char *value)
{
	size_t len = strlen(value);
	const char *word = v->values;

	/* "quiet" is another word of base/log.c for off. */
	if (len == 0 || !islower((unsigned char)*word) ||
	    strcmp(value, "quiet") == 0)
		return true;
	for (; word; word = strchr(word, '|')) {
		word += *word == '|';
		if (strcspn(word, "|") == len && memcmp(word, value, len) == 0)
			return true;
	}
	return false;
}

void vb_cli_check_variables(vb_cli_tell_variable *tell)
{
	char text[200];

	for (char **e = environ; e && *e; e++) {
		size_t len = strcspn(*e, "=");
		const struct vb_cli_variable *v;

		if (strncmp(*e, PREFIX, PREFIX_LEN) != 0 || len > LONGEST ||
		    (*e)[len] != '=')
			continue;
		v = variable_of(*e, len);
		if (v && !has_value(v, *e + len + 1))
			snprintf(text, sizeof(text),
				 "%s is \"%.*s\", which has no effect; it may "
				 "be %s",
				 v->name, VALUE_SHOWN, *e + len + 1, v->values);
		else if (!v && (v = nearly(*e, len)))
			snprintf(text, sizeof(text),
				 "%.*s is set, which Verbena does not know; "
				 "is %s meant?",
				 (int)len, *e, v->name);
		else
			continue;
		tell(*e, len, text);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/birth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STAT_BYTES 4096
/* Index of the start time in /proc/PID/stat, proc(5). */
#define BORN_FIELD 22

/* The second field is the program's name in parentheses, which may contain
 * spaces and parentheses, so the fields are counted from the last
 * parenthesis. */
static uint64_t birth_in(const char *stat)
{
	const char *at = strrchr(stat, ')');
	uint64_t born = 0;

	for (unsigned field = 2; at && field < BORN_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at && sscanf(at, " %" SCNu64, &born) == 1 ? born : 0;
}

uint64_t vb_birth_of(pid_t pid)
{
	char path[40], text[STAT_BYTES];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	fclose(f);
	return birth_in(text);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What `verbena doctor` has found: a list that is printed as text or as JSON
 * (docs/COMMAND.md). */
#ifndef CLI_FINDING_H
#define CLI_FINDING_H

#include <stdio.h>

#include "base/defs.h"

enum vb_finding_status {
	FINDING_OK,
	FINDING_NOTE,	 /* good to know; nothing is wrong */
	FINDING_WARNING, /* some programs fail, or are slow */
	FINDING_PROBLEM, /* programs cannot work */
};

/* Add a finding. @id: a word that scripts look for, and that stays the same.
 * @mend: the command that mends it, which this copies; NULL: none. The rest is
 * a sentence. Any thread. */
void vb_finding_add(const char *id, enum vb_finding_status status,
		    const char *mend, const char *format, ...) VB_PRINTF(4, 5);
/* Make a text that lasts as long as the process: for @mend. */
const char *vb_finding_text(const char *format, ...) VB_PRINTF(1, 2);
/* Returns @name as one word of a shell, in single quotes where it needs them:
 * for names in @mend, which other users may have chosen. The text lasts as long
 * as the process. */
const char *vb_finding_quoted(const char *name);

/* Put a question mark for each byte of @text that could command a terminal or
 * is no ASCII, as names of files and programs can have. Returns @text. */
char *vb_finding_clean(char *text);

/* Print all findings. Bytes that are no printable ASCII, which names of files
 * and programs can have, become question marks. Returns the worst status. */
enum vb_finding_status vb_findings_print(FILE *to, bool json);

/* An examination may hang, for example in a file system. So if the process
 * still runs after @limit, a thread prints the findings so far and ends the
 * process with the exit status of `verbena doctor`. */
void vb_findings_end_after(vb_time limit, bool json);

#endif

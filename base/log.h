/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Log messages for humans, on standard error.
 * VERBENA_LOG=off|error|warn|info|debug chooses the level; the default is
 * warn, and "quiet" is another word for off. Never log for each packet. A message is in lower case and names the
 * object first, then the exact cause: "qp 0x12: rkey 0x1a2b: write ends 8 bytes
 * past the region". Keeps errno; any thread may log.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/defs.h"

enum vb_log_level { LOG_QUIET, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

bool vb_log_wants(enum vb_log_level level);
void vb_log(enum vb_log_level level, const char *format, ...) VB_PRINTF(2, 3);

/* Note that this thread has logged why a call fails (vb_log() does this for
 * warnings and errors, also for those that VERBENA_LOG suppresses), so that the
 * thread's caller need not log it again. */
void vb_log_note(void);
/* Has this thread called vb_log_note() since the last call of this function? */
bool vb_log_take_note(void);

#endif

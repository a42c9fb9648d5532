/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a call was refused, or a work request failed: one table of causes, each
 * with a code, a name, what it means and what to do. Such a cause is told once
 * on standard error (level warn of base/log.h), as
 *
 *	verbena: qp 0x12: WHAT HAPPENED; WHAT TO DO [101 RKEY_UNKNOWN]
 *
 * and ibv_wc.vendor_err has the code. docs/ERRORS.md is made from the table
 * (scripts/errors.py). Codes are part of what programs see, so they never
 * change.
 */
#ifndef CORE_WHY_H
#define CORE_WHY_H

#include "base/defs.h"

enum vb_why {
	WHY_NONE = 0,
	/* 100: this end refuses a request of the peer. */
	WHY_RKEY_UNKNOWN = 101,
	WHY_RKEY_DOMAIN = 102,
	WHY_RKEY_WINDOW = 103,
	WHY_RKEY_BOUNDS = 104,
	WHY_RKEY_RIGHTS = 105,
	WHY_QP_ACCESS = 106,
	WHY_REMOTE_PAGE = 107,
	WHY_RECV_SHORT = 108,
	WHY_TOO_MANY_READS = 109,
	WHY_ALIGNMENT = 110,
	WHY_PEER_PROTOCOL = 111,
	WHY_MTU = 112,
	WHY_RECV_KEY = 113,
	WHY_INVALIDATE = 114,
	WHY_XRC_SRQ = 115,
	WHY_QKEY = 116,
	WHY_CQ_FULL = 117,
	WHY_RECV_NONE = 118,
	WHY_XRC_FORWARD = 119,
	/* 200: a request of this end has failed. */
	WHY_REM_ACCESS = 201,
	WHY_REM_INVALID = 202,
	WHY_REM_OPERATION = 203,
	WHY_RNR = 204,
	WHY_SILENCE = 205,
	WHY_PSN = 206,
	WHY_LKEY_UNKNOWN = 207,
	WHY_LKEY_DOMAIN = 208,
	WHY_LKEY_BOUNDS = 209,
	WHY_LKEY_RIGHTS = 210,
	WHY_LKEY_WINDOW = 211,
	WHY_LOCAL_PAGE = 212,
	WHY_NO_READS = 213,
	WHY_LENGTH = 214,
	WHY_BIND = 215,
	WHY_BAD_RESPONSE = 216,
	WHY_TAGS = 217,
	WHY_STREAM = 218,
	WHY_OPERATION = 219,
	WHY_LOCAL = 220,
	WHY_SILENCE_IB = 221,
	WHY_SILENCE_V1 = 222,
	/* 300: a verb was refused. */
	WHY_TRANSITION = 301,
	WHY_ATTR_MISSING = 302,
	WHY_ATTR_EXTRA = 303,
	WHY_ATTR_RANGE = 304,
	WHY_GID_INDEX = 305,
	WHY_ADDRESS = 306,
	WHY_ROUTE = 307,
	WHY_STATE = 308,
	WHY_SEND_FULL = 309,
	WHY_RECV_FULL = 310,
	WHY_INLINE = 311,
	WHY_SGES = 312,
	WHY_OPCODE = 313,
	WHY_FLAGS = 314,
	WHY_AH = 315,
	WHY_INLINE_ADDRESS = 316,
	WHY_MESSAGE_LENGTH = 317,
	WHY_RECV_SRQ = 318,
	WHY_CREATE = 319,
	WHY_LIMIT = 320,
	WHY_REGISTER = 321,
	WHY_HANDLE = 322,
	WHY_BUSY = 323,
	WHY_RESIZE = 324,
	WHY_NO_SUPPORT = 325,
	WHY_IWARP_MOVE = 326,
	WHY_REFUSED = 327,
	WHY_INDEX = 328,
	WHY_GROUP = 329,
	WHY_EVENTS = 330,
	/* 400: the connection manager. */
	WHY_CM_SILENCE = 401,
	WHY_CM_NOBODY = 402,
	WHY_CM_ADDRESS = 403,
	WHY_CM_PORT = 404,
	WHY_CM_CALL = 405,
	WHY_CM_PEER = 406,
	WHY_CM_SILENCE_IB = 407,
	/* 500: a fabric. */
	WHY_NO_SM = 501,
	WHY_PORT_DOWN = 502,
	WHY_UMAD = 503,
};

struct vb_why_row {
	enum vb_why code;
	const char *name;
	const char *meaning; /* what the cause means: a sentence */
	/* what to do: an imperative clause, in lower case */
	const char *remedy;
};

/* Returns the row of @why; NULL: there is no such code. */
const struct vb_why_row *vb_why_row(unsigned why);

/* Report the cause @why on standard error, with a sentence that names the
 * object first, then what happened with its values; this function adds the
 * remedy and the code. @object is any number that differs between objects (a
 * queue pair's number, an address): of equal causes at one object only the
 * first is reported, and then the 10th, 100th and so on, with their count. Any
 * thread, with or without locks; keeps errno. */
void vb_why(enum vb_why why, uint64_t object, const char *format, ...)
	VB_PRINTF(3, 4);

/*
 * Every refused call leaves a message. When a public function returns an error,
 * it calls vb_why_refused(). That function reports the call and its error,
 * unless this thread has already reported a more exact reason (vb_log_note()).
 */

/* Report a refusal to the log only (level info). For refusals that programs
 * cause in normal work, for example because a device lacks a feature. */
void vb_why_quietly(const char *format, ...) VB_PRINTF(1, 2);
/* The function @call is refused with @error, a positive errno. Tells nothing of
 * EAGAIN and EINTR, which are no refusals. Keeps errno. */
void vb_why_refused(const char *call, int error);

/* Would vb_why() write anything, at the log level that the user has chosen? */
bool vb_why_wanted(void);

#endif

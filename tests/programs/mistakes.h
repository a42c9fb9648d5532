/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of mistakes_test: one mistake of a program, and the
 * sentences that the library must print about it. */
#ifndef TESTS_PROGRAMS_MISTAKES_H
#define TESTS_PROGRAMS_MISTAKES_H

#include "bad_input.h"

/* The kinds of devices and networks on which a mistake can be made. */
enum {
	ON_IB = 1,
	ON_RNIC = 2,
	ON_WIRE = 4,
	ON_CALLS = 8, /* calls that send nothing: one device is enough */
	ON_FABRIC = 16,
	ON_V1 = 32, /* RoCEv1 */
	ANYWHERE = ON_IB | ON_RNIC
};

struct mistake {
	const char *name;
	void (*make)(void);
	unsigned where;
	/* extended regular expressions; each must match exactly one line, and
	 * there may be no other lines. None: nothing may be printed */
	const char *lines[2];
};

extern const struct mistake request_mistakes[], verb_mistakes[];
extern const struct mistake call_mistakes[], memory_mistakes[], cm_mistakes[];
extern const unsigned request_mistake_count, verb_mistake_count;
extern const unsigned call_mistake_count, memory_mistake_count,
	cm_mistake_count;

/* the kind of device or network of this run: one value of the enum above */
extern unsigned where;

/* the IP address of the device, for librdmacm; or NULL */
extern const char *address;

/* an address of another host, on which no program uses RDMA; or NULL */
extern const char *nobody;

/* @failed is the result of a call that must fail, as true or false. */
#define MUST_FAIL(failed)                                                      \
	do {                                                                   \
		if (!(failed))                                                 \
			wrong("this must fail: %s", #failed);                  \
	} while (0)
#define REFUSED(call) MUST_FAIL((call) != 0)
#define NOTHING(call) MUST_FAIL((call) == NULL)

/* The next completion of @s must have this status and vendor_err. */
void fails_with(struct side *s, enum ibv_wc_status status, unsigned code);

#endif

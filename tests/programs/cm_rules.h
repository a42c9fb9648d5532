/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations for the files of the test cm_rules. */
#ifndef TESTS_PROGRAMS_CM_RULES_H
#define TESTS_PROGRAMS_CM_RULES_H

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/ib.h>
#include <infiniband/sa.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PORT "7478"

extern int failures;
void say(const char *what, bool well);

/* Report the failed rule @what if @it is false; only the first failure is
 * reported. Returns @it. */
bool holds(bool it, const char *what);
#define HOLDS(condition) holds(condition, #condition)

bool fails(int rc, int error);

/* Rules for addresses that are GIDs (AF_IB). */

struct place {
	const char *name, *service;
	int family, flags, space, type;
};
struct rdma_cm_id *end_point(const struct place *p);
extern char heard[64];
void gids(const char *ip, const char *ip6);

/* Rules for ids that are bound to an address. */
struct sockaddr_storage address_of(const char *name, int port);
extern struct rdma_event_channel *channel;
struct rdma_cm_id *new_id(enum rdma_port_space ps);
bool reuse(const char *ip);
bool afonly(const char *ip);

/* A port that the kernel chooses is in the kernel's range, which the test has
 * made narrow, and is not reserved. */
bool ephemeral(const char *ip);

/* Rules for setting the path of an id by rdma_set_option(). */
enum rdma_cm_event_type next_event(struct rdma_event_channel *from,
				   struct rdma_cm_event **e);
bool hears(enum rdma_cm_event_type wanted);
struct rdma_cm_id *resolved(const char *ip, int port);

/* The program connects with a queue pair number that belongs to no program. The
 * first call is for datagrams, while the session is younger than 2 s and the
 * broker may not know the slot of this program yet; the second one is for a
 * connection. Neither may wait for long. */
bool strangers(const char *ip);
bool path(const char *ip);

/* As on Linux, an id that is bound to any address still has an address
 * family. */
bool families(const char *ip);

/* TOS, and the ACK timeout: options of connections that a capture shows
 * (cm.sh), where no program listens. */
bool way(const char *ip);
bool own_qp(const char *ip);

/* Rules for events that come while an id changes its channel. */
bool migrate(const char *ip);

/* rdma_destroy_id(3) waits until the program has acknowledged the event. */
bool waits(const char *ip);
bool answered_early(const char *ip);

/* A channel with a non-blocking descriptor returns EAGAIN without events. */
bool does_not_block(void);

/* A function that is newer than the library that this program is linked
 * with. */
typedef int resolve_ai(struct rdma_cm_id *id, const char *node,
		       const char *service, const struct rdma_addrinfo *hints);
bool addrinfo_by_event(const char *ip);
bool join_corners(const char *ip);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of cm_rules share. */
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

/* The first that does not hold is why. */
bool holds(bool it, const char *what);
#define HOLDS(condition) holds(condition, #condition)

bool fails(int rc, int error);

/* GIDs. */

struct place {
	const char *name, *service;
	int family, flags, space, type;
};
struct rdma_cm_id *end_point(const struct place *p);
extern char heard[64];
void gids(const char *ip, const char *ip6);

/* Bound ids. */
struct sockaddr_storage address_of(const char *name, int port);
extern struct rdma_event_channel *channel;
struct rdma_cm_id *new_id(enum rdma_port_space ps);
bool reuse(const char *ip);
bool afonly(const char *ip);

/* The kernel's, of a test that has made it narrow: all but the reserved. */
bool ephemeral(const char *ip);

/* Options of the way. */
enum rdma_cm_event_type next_event(struct rdma_event_channel *from,
				   struct rdma_cm_event **e);
bool hears(enum rdma_cm_event_type wanted);
struct rdma_cm_id *resolved(const char *ip, int port);

/* Of a program that has connected nothing yet: the broker may only just have
 * begun to know it, for 2 s, and in the first of them too for datagrams, which
 * anybody may look up. */
bool strangers(const char *ip);
bool path(const char *ip);

/* As Linux: one that is bound, though to any address, has a family. */
bool families(const char *ip);

/* TOS, and how long an ACK may take: of connections that are seen outside
 * (cm.sh), where nobody listens. */
bool way(const char *ip);
bool own_qp(const char *ip);

/* Events that are still to come. */
bool migrate(const char *ip);

/* rdma_destroy_id(3): an event that is not acknowledged is waited for. */
bool waits(const char *ip);
bool answered_early(const char *ip);

/* A channel that is not to block. */
bool does_not_block(void);

/* Newer than the library that this is linked with. */
typedef int resolve_ai(struct rdma_cm_id *id, const char *node,
		       const char *service, const struct rdma_addrinfo *hints);
bool addrinfo_by_event(const char *ip);
bool join_corners(const char *ip);

#endif

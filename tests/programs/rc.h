/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the test programs: a device, a reliable connection, and a TCP
 * connection for agreements. The programs are ordinary users of libibverbs:
 * they use nothing of this project but its library at run time. Any failure
 * ends the program with a sentence.
 */
#ifndef TESTS_PROGRAMS_RC_H
#define TESTS_PROGRAMS_RC_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void die(const char *format, ...)
	__attribute__((format(printf, 1, 2), noreturn));
/* Ends the program with @what and errno's text unless @truth is true. */
void must(bool truth, const char *what);

/* A random generator, splitmix64, of which both sides make equal sequences. */
struct rng {
	uint64_t state;
};
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t bound);
void rng_fill(struct rng *r, void *bytes, size_t len);
double seconds(void);

struct rc_options {
	/* name of the RDMA device; NULL: the first in the list */
	const char *device;
	int family; /* IP version of the GID to use: 4 or 6 */
	/* IP address of the server; NULL: this program is the server */
	const char *host;
	/* TCP port by which both programs exchange addresses */
	int port;
	enum ibv_mtu mtu; /* path MTU; 0: the port's active MTU */
	unsigned timeout, retry, rnr_retry;
};
#define RC_OPTIONS                                                             \
	{                                                                      \
		.family = 4, .port = 18515, .timeout = 14, .retry = 7,         \
		.rnr_retry = 7                                                 \
	}

/*
 * The options of every program: [-d DEVICE] [-4|-6] [-p PORT]. rc_option()
 * handles one letter of getopt(); an unknown letter ends the program. On an
 * InfiniBand device -6 means addresses with a GRH, and -4 without.
 */
#define RC_LETTERS "d:46p:"
void rc_read_option(struct rc_options *o, int letter);
/* Read all options. Returns the arguments that follow, the last one NULL. */
char **rc_read_options(struct rc_options *o, int argc, char **argv);

struct rc_device {
	struct ibv_context *context;
	struct ibv_pd *pd;
	int gid_index;
	union ibv_gid gid;
	/* The LID of an InfiniBand port, elsewhere 0, and whether addresses
	 * have a GRH: with -4 they have none there. */
	uint16_t lid;
	bool global;
	enum ibv_mtu mtu;
};
void rc_open(struct rc_device *d, const struct rc_options *o);
void rc_close(struct rc_device *d);

/* What the peer must know of a queue pair to connect to it. */
struct rc_address {
	union ibv_gid gid;
	uint16_t lid;
	uint32_t qpn, psn;
	enum ibv_mtu mtu;
};

struct ibv_qp *rc_qp(struct rc_device *d, struct ibv_cq *cq, unsigned wrs,
		     unsigned sges, unsigned inline_bytes);
struct rc_address rc_address(const struct rc_device *d, const struct ibv_qp *qp,
			     uint32_t psn);
/* Returns the address of the port that has @gid, and on InfiniBand @lid. */
struct ibv_ah_attr rc_path(const struct rc_device *d, const union ibv_gid *gid,
			   uint16_t lid);
/* Each of these functions moves the queue pair to one state by ibv_modify_qp(),
 * and returns 0 or the errno. */
int rc_to_init(struct ibv_qp *qp, unsigned access);
int rc_to_rtr(const struct rc_device *d, struct ibv_qp *qp,
	      const struct rc_address *peer);
int rc_to_rts(struct ibv_qp *qp, const struct rc_options *o, uint32_t psn);
/* Take the datagram queue pair @qp of port 1 from RESET to RTS, or end the
 * program. */
void rc_start_datagrams(struct ibv_qp *qp, uint32_t qkey);
/* Move the QP to INIT, RTR and RTS; a failure ends the program. */
void rc_connect(const struct rc_device *d, struct ibv_qp *qp,
		const struct rc_options *o, uint32_t psn,
		const struct rc_address *peer);
#define RC_ALL_ACCESS                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |                    \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* Wait for one completion for at most @limit seconds; false: none came. */
bool rc_wait(struct ibv_cq *cq, double limit, struct ibv_wc *wc);

/* meet the peer: returns a connected TCP socket */
int tcp_meet(const struct rc_options *o);
void tcp_send(int fd, const void *bytes, size_t len);
void tcp_recv(int fd, void *bytes, size_t len);
/* Send the @len bytes @mine to the peer, and receive its @theirs. */
void tcp_swap(int fd, const void *mine, void *theirs, size_t len);
void tcp_barrier(int fd);

#endif

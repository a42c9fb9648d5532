/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket options and rfcntl() commands beyond the public rsockets interface,
 * for the preload library (preload.h).
 *
 * RS_PORT_SECRET, level SOL_RDMA, 8 bytes: a random number of a bound socket. A
 * child of fork() that sets an equal number on another socket before it binds
 * that to an equal address shares the port with the first socket.
 *
 * RS_LISTEN_LATER, level SOL_RDMA, 4 bytes: after rlisten() the socket accepts
 * connections only from the first accept or poll on. So a parent that leaves
 * accepting to its children takes no connection away from them.
 *
 * RS_MOVE, rfcntl(): gives the socket another number and returns it, even while
 * another thread is in rclose(). The old number stays an open descriptor that
 * no socket uses. RS_MOVE_TO: like RS_MOVE, to a given number, which is a
 * duplicate of the descriptor.
 *
 * RS_FORGET, rfcntl(): does what rclose() does, also for a set of
 * repoll_create(), but the descriptor stays open.
 *
 * RS_TAKEN, rfcntl(): 1 if a socket has the number, even one that another
 * thread is closing; else 0.
 */
#ifndef FRONT_RSOCKETS_PRIVATE_OPTIONS_H
#define FRONT_RSOCKETS_PRIVATE_OPTIONS_H

enum {
	RS_PORT_SECRET = 0x7f01,
	RS_LISTEN_LATER,
	RS_MOVE,
	RS_MOVE_TO,
	RS_FORGET,
	RS_TAKEN,
};

#endif

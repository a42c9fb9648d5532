/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The broker: one small process in each network namespace, which the first
 * program starts and which ends when idle. It hands out slots, and runs the
 * connection manager (broker/cm.h).
 *
 * RoCEv2 peers send to UDP port 4791, so the programs of a host share it:
 * SO_REUSEPORT sockets, and a classic BPF program that chooses a socket by the
 * top bits of the destination QPN (link/udp.h). A socket's place in that group
 * is the order of bind, and the kernel moves the last one into the gap when one
 * closes; so none of them is allowed to close while a program lives:
 *
 * The vault is a socket. Its queue holds a duplicate of every slot's socket, in
 * flight as SCM_RIGHTS. So every process that has the vault open keeps all
 * slots' sockets open. The broker gives the vault to each trusted program; a
 * new broker receives the vault from a program that rejoins, and reads the
 * sockets back with MSG_PEEK, which leaves them in the queue.
 *
 * The vault is given only to programs of the broker's own user and of root, the
 * trusted programs, as it opens every program's socket; and a broker adopts
 * only a vault of such programs. A program uses the broker that runs,
 * even one of another user, and logs that user's number. The broker's user can
 * read the program's packets, so root runs the broker where users do not trust
 * each other. A broker serves all users. It gives a program that it
 * does not trust the slot's socket and name but no vault, so that program
 * cannot help a new broker: if the broker is killed while only such programs
 * live, they keep port 4791, and no other program gets in, until the last of
 * them ends. broker/slots.c says which sockets such programs get.
 *
 * A slot is taken while its name in the abstract socket namespace is bound. So
 * the kernel records it, not the broker: the broker binds the name and gives
 * the socket to the program, and the name becomes free when the last process
 * that has the socket ends, even by kill -9.
 */
#ifndef BROKER_BROKER_H
#define BROKER_BROKER_H

#include "base/defs.h"

/* Returns the socket to which programs connect, which the caller owns; or
 * -errno: -EADDRINUSE when another broker has it. From the return on, the
 * kernel accepts connections of programs. */
VB_MUST_CHECK int vb_broker_listen(void);

/* Returns the same socket where systemd has made it and started this process
 * with it, by the protocol of sd_listen_fds(3); the socket stays open there
 * when the caller closes it. -ENOENT: this process was not started so;
 * -EINVAL: it got other sockets than the one that the broker needs. */
#define VB_INHERITED_FD 3
VB_MUST_CHECK int vb_broker_inherit(void);

/* Serves programs until the broker is idle: for @linger ns (at least 100 ms) no
 * program had a session and no connection was being made, established or
 * ending, and no slot is taken at the end of that time. Closes @listener. 0 or
 * -ENOMEM. */
VB_MUST_CHECK int vb_broker_run(int listener, vb_time linger);

#endif

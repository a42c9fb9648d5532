/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the preload needs and rsockets have not.
 *
 * RS_PORT_TICKET: an option of level SOL_RDMA, 8 bytes. Who reads it of a
 * socket that is bound, and writes it to another of the same address before
 * that is bound, in a child of fork, shares its port.
 *
 * RS_LATER: such an option, of 4 bytes: what rlisten() announces is announced
 * only when the program first asks for a connection. Who leaves that to its
 * children has none waiting that nobody will ever take.
 *
 * RS_MOVE: for rfcntl(). The socket, which may be in another thread's rclose(),
 * has another number, the answer, and its old one is a descriptor that is
 * nobody's. RS_MOVE_TO: as that, to a number that is a duplicate of it.
 *
 * RS_FORGET: as rclose(), also of a set of repoll_create(), but that its number
 * stays taken, by nobody.
 *
 * RS_TAKEN: whether a socket has the number, in rclose() or not.
 */
#ifndef FRONT_RSOCKETS_PRIVATE_OPTIONS_H
#define FRONT_RSOCKETS_PRIVATE_OPTIONS_H

enum {
	RS_PORT_TICKET = 0x7f01,
	RS_LATER,
	RS_MOVE,
	RS_MOVE_TO,
	RS_FORGET,
	RS_TAKEN,
};

#endif

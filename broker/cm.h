/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's connection manager: queue pair 1 in slot 0, the ports of
 * librdmacm, and the listeners and connections of the host's programs. It runs
 * in the broker because it must outlive a program that crashes: when the
 * program's session ends, it frees the ports and tells the peers. The broker's
 * one thread calls all of it; nothing is locked. @now is the time of
 * vb_clock_read(), in ns.
 */
#ifndef BROKER_CM_H
#define BROKER_CM_H

#include "broker/process.h"
#include "broker/quota.h"
#include "wire/ipc_cm.h"

struct vb_host_cm;
struct vb_cm_client; /* a session that speaks of connections */

/* @owns(@arg, ...) says whether the queue pair @qpn belongs to the process
 * @who. Returns 0, and the caller destroys *@cm in the end; or -ENOMEM. */
VB_MUST_CHECK int vb_host_cm_create(
	bool (*owns)(void *arg, const struct vb_process *who, uint32_t qpn),
	void *arg, vb_time now, struct vb_host_cm **cm);
/* Frees @cm, which all clients have left before. */
void vb_host_cm_destroy(struct vb_host_cm *cm);

/* Begins to send and receive on @rx_fd, slot 0's socket. @cm uses a duplicate;
 * the caller keeps @rx_fd. Without it @cm reaches no other host. 0 or
 * -errno. */
VB_MUST_CHECK int vb_host_cm_attach(struct vb_host_cm *cm, int rx_fd);
/* A descriptor that is readable when datagrams have come; @cm closes it. -1:
 * not attached. */
int vb_host_cm_fd(const struct vb_host_cm *cm);
/* Takes some of the datagrams that wait. */
void vb_host_cm_poll(struct vb_host_cm *cm, vb_time now);
/* The time at which to call vb_host_cm_tick(); VB_NEVER: none. */
vb_time vb_host_cm_deadline(const struct vb_host_cm *cm);
void vb_host_cm_tick(struct vb_host_cm *cm, vb_time now);
/* Whether a connection is being made, established or ending: then the broker
 * must stay. */
bool vb_host_cm_is_busy(const struct vb_host_cm *cm);
/* The number of all connections, those in time wait included. */
unsigned vb_host_cm_count(const struct vb_host_cm *cm);

/* Adds a session: @fd is its socket, @user is the one whose quota it uses. Both
 * stay the caller's and must outlive the client. NULL: no memory. */
VB_MUST_CHECK struct vb_cm_client *vb_host_cm_join(struct vb_host_cm *cm,
						   int fd,
						   const struct vb_process *who,
						   struct vb_user *user);
/* The session of @client has ended: releases its ids, ports and connections,
 * and frees @client. */
void vb_host_cm_leave(struct vb_cm_client *client, vb_time now);
/* Handles a message of @len bytes from the program (wire/ipc_cm.h). -EPROTO: it
 * is malformed or breaks the protocol, and the caller must end the session. */
VB_MUST_CHECK int vb_host_cm_take(struct vb_cm_client *client,
				  const uint8_t *bytes, size_t len,
				  vb_time now);
/* Whether messages to the program wait for room in its socket. */
bool vb_host_cm_is_waiting(const struct vb_cm_client *client);
/* Sends what waits, as far as there is room. */
void vb_host_cm_flush(struct vb_cm_client *client);
/* 0; or the -errno for which the caller must end the session. */
int vb_host_cm_error(const struct vb_cm_client *client);

#endif

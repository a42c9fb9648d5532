/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's connection manager: queue pair 1 in slot 0 and at the adapters of
 * fabrics that programs use (broker/place.h), the ports of librdmacm, and the
 * listeners and connections of the host's programs. It runs
 * in the broker because it must outlive a program that crashes: when the
 * program's session ends, it frees the ports and tells the peers. Only the
 * broker's one thread calls these functions, so there are no locks. @now is the
 * time of vb_clock_read(), in ns.
 */
#ifndef BROKER_CM_H
#define BROKER_CM_H

#include "broker/mail.h"
#include "broker/process.h"
#include "broker/quota.h"
#include "wire/ipc_cm.h"

struct vb_host_cm;
struct vb_cm_client; /* a session that sends messages about connections */

/* Create the connection manager. @owns(@arg, ...) returns whether the queue
 * pair @qpn belongs to the process @who. 0, and the caller destroys *@cm at the
 * end; or -errno. */
VB_MUST_CHECK int vb_host_cm_create(
	bool (*owns)(void *arg, const struct vb_process *who, uint32_t qpn),
	void *arg, vb_time now, struct vb_host_cm **cm);
/* Frees @cm, which all clients have already left. */
void vb_host_cm_destroy(struct vb_host_cm *cm);

/* Begins to send and receive on @rx_fd, slot 0's socket, unless it has begun
 * already. @cm uses a duplicate; the caller still owns @rx_fd. Before this call
 * @cm reaches no other host by RoCEv2. An error is logged, and calls within the
 * next second do nothing. */
void vb_host_cm_attach(struct vb_host_cm *cm, int rx_fd, vb_time now);
/* Returns a descriptor that is readable when datagrams, or messages of fabrics,
 * have come; @cm closes it. */
int vb_host_cm_fd(const struct vb_host_cm *cm);
/* Receives some of the datagrams and messages that wait. */
void vb_host_cm_poll(struct vb_host_cm *cm, vb_time now);
/* Returns the time at which to call vb_host_cm_tick(); VB_NEVER: no timer
 * runs. */
vb_time vb_host_cm_deadline(const struct vb_host_cm *cm);
void vb_host_cm_tick(struct vb_host_cm *cm, vb_time now);
/* Returns whether a connection is being made, established or ending: then the
 * broker must stay. */
bool vb_host_cm_is_busy(const struct vb_host_cm *cm);
/* Returns the number of all connections, those in time wait included. */
unsigned vb_host_cm_count(const struct vb_host_cm *cm);

/* Makes a client for the session of the process @who. @fd is the session's
 * socket. The session counts against the quota of @user. The caller still owns
 * @fd and @user, and keeps both until the client has been destroyed. NULL: no
 * memory. */
VB_MUST_CHECK struct vb_cm_client *vb_host_cm_join(struct vb_host_cm *cm,
						   int fd,
						   const struct vb_process *who,
						   struct vb_user *user);
/* The session of @client has ended: releases its ids, ports and connections,
 * and frees @client. */
void vb_host_cm_leave(struct vb_cm_client *client, vb_time now);
/* Returns whether the message @mail of the program concerns RoCEv2, for which
 * queue pair 1 needs slot 0's socket. */
bool vb_host_cm_needs_roce(const struct vb_cm_client *client,
			   const struct vb_mail *mail);
/* Handles the message @mail of the program (wire/ipc_cm.h), and keeps a
 * descriptor of it that it needs. -EPROTO: the message is malformed or breaks
 * the protocol, and the caller must end the session. */
VB_MUST_CHECK int vb_host_cm_take(struct vb_cm_client *client,
				  struct vb_mail *mail, vb_time now);
/* Returns whether messages to the program wait for room in its socket. */
bool vb_host_cm_is_waiting(const struct vb_cm_client *client);
/* Sends the waiting messages, as far as the socket has room. */
void vb_host_cm_flush(struct vb_cm_client *client);
/* Returns 0, or the -errno for which the caller must end the session. */
int vb_host_cm_error(const struct vb_cm_client *client);

#endif

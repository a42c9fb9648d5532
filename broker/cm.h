/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host's connection manager: queue pair 1 in slot 0, ports, and what the
 * host's programs listen on and are connected by. It is here so that it
 * outlives a program that crashes: its ports are free, and its peers told,
 * when its session ends.
 */
#ifndef BROKER_CM_H
#define BROKER_CM_H

#include "broker/process.h"
#include "broker/quota.h"
#include "wire/ipc_cm.h"

struct vb_host_cm;
struct vb_cm_client; /* a program's session */

/* @owns: may that process speak for this queue pair? -errno. */
VB_MUST_CHECK int vb_host_cm_create(
	bool (*owns)(void *arg, const struct vb_process *who, uint32_t qpn),
	void *arg, vb_time now, struct vb_host_cm **cm);
void vb_host_cm_destroy(struct vb_host_cm *cm);

/* Slot 0's socket; duplicated. Without it nobody is reached. -errno */
VB_MUST_CHECK int vb_host_cm_attach(struct vb_host_cm *cm, int rx_fd);
/* Readable while datagrams may wait; -1: not attached. */
int vb_host_cm_fd(const struct vb_host_cm *cm);
void vb_host_cm_poll(struct vb_host_cm *cm, vb_time now);
vb_time vb_host_cm_deadline(const struct vb_host_cm *cm);
void vb_host_cm_tick(struct vb_host_cm *cm, vb_time now);
/* Something is left to be said to a peer. */
bool vb_host_cm_is_busy(const struct vb_host_cm *cm);
/* Connections, those included that only wait for late packets to die out. */
unsigned vb_host_cm_count(const struct vb_host_cm *cm);

/* @fd and @user stay the caller's. NULL: no memory. */
VB_MUST_CHECK struct vb_cm_client *vb_host_cm_join(struct vb_host_cm *cm,
						   int fd,
						   const struct vb_process *who,
						   struct vb_user *user);
/* The session ended, or the program did. */
void vb_host_cm_leave(struct vb_cm_client *client, vb_time now);
/* A message of its. -errno: nonsense, end the session. */
VB_MUST_CHECK int vb_host_cm_take(struct vb_cm_client *client,
				  const uint8_t *bytes, size_t len,
				  vb_time now);
/* Messages wait for room in its socket. */
bool vb_host_cm_is_waiting(const struct vb_cm_client *client);
/* There may be room. */
void vb_host_cm_flush(struct vb_cm_client *client);
/* 0; -errno: end the session, whether it can be written to or not. */
int vb_host_cm_error(const struct vb_cm_client *client);

#endif

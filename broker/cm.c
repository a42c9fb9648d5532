/* SPDX-License-Identifier: BSD-2-Clause */
/* The host's connection manager: sessions of programs, time-outs, and the MADs
 * of queue pair 1, of RoCEv2 and of fabrics' adapters. */
#include "broker/cm_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/log.h"
#include "base/rand.h"

/* the least time between two tries to open queue pair 1 on slot 0's socket */
#define ATTACH_PAUSE VB_SEC

/* Sending messages to programs. */

void vb_cm_client_tell(struct vb_cm_client *c, const struct vb_ipc_cm *m)
{
	uint8_t bytes[VB_IPC_CM_BYTES];

	(void)vb_ipc_cm_put(bytes, m);
	vb_outbox_put(&c->out, bytes, sizeof(bytes));
}

bool vb_host_cm_is_waiting(const struct vb_cm_client *client)
{
	return client->out.first;
}

void vb_host_cm_flush(struct vb_cm_client *client)
{
	vb_outbox_flush(&client->out);
}

int vb_host_cm_error(const struct vb_cm_client *client)
{
	return client->out.error;
}

struct vb_cm_client *vb_host_cm_join(struct vb_host_cm *cm, int fd,
				     const struct vb_process *who,
				     struct vb_user *user)
{
	struct vb_cm_client *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->cm = cm;
	c->who = *who;
	c->user = user;
	vb_outbox_init(&c->out, fd, user);
	return c;
}

void vb_host_cm_leave(struct vb_cm_client *client, vb_time now)
{
	client->cm->now = now;
	while (client->own)
		vb_cm_id_free(client->own);
	vb_cm_client_drop_places(client);
	vb_outbox_fini(&client->out);
	free(client);
}

/* Using queue pair 1. */

static void send_cm_mad(void *arg, const struct vb_mad_path *path,
			const uint8_t mad[VB_MAD_BYTES])
{
	struct vb_host_cm *cm = arg;

	if (path->place)
		vb_place_send(cm->adapters, path, mad);
	else if (cm->gsi)
		vb_gsi_send(cm->gsi, path, mad);
}

static void take_mad(void *arg, const struct vb_mad_path *back,
		     const uint8_t *bytes, size_t len)
{
	struct vb_host_cm *cm = arg;

	vb_cm_recv(cm->engine, back, bytes, len, cm->now);
}

static void take_return(void *arg, const struct vb_gid *to,
			const uint8_t *bytes, size_t len, int error)
{
	struct vb_host_cm *cm = arg;

	vb_cm_returned(cm->engine, to, bytes, len, error, cm->now);
}

int vb_host_cm_fd(const struct vb_host_cm *cm)
{
	return cm->epoll;
}

void vb_host_cm_poll(struct vb_host_cm *cm, vb_time now)
{
	cm->now = now;
	if (cm->gsi)
		vb_gsi_recv(cm->gsi, take_mad, cm);
	vb_places_poll(cm->adapters);
}

vb_time vb_host_cm_deadline(const struct vb_host_cm *cm)
{
	return VB_MIN(vb_cm_deadline(cm->engine),
		      vb_host_cm_places_deadline(cm));
}

void vb_host_cm_tick(struct vb_host_cm *cm, vb_time now)
{
	cm->now = now;
	/* Handle MADs that ICMP has returned before vb_cm_tick(): such a MAD
	 * may end a request, and vb_cm_tick() then does not repeat that
	 * request. */
	if (cm->gsi && now >= vb_cm_deadline(cm->engine))
		vb_gsi_returns(cm->gsi, take_return, cm);
	vb_cm_tick(cm->engine, now);
	vb_host_cm_tick_places(cm);
}

bool vb_host_cm_is_busy(const struct vb_host_cm *cm)
{
	return vb_cm_busy(cm->engine) > 0;
}

unsigned vb_host_cm_count(const struct vb_host_cm *cm)
{
	return vb_cm_count(cm->engine);
}

static int await(const struct vb_host_cm *cm, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(cm->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int attach_gsi(struct vb_host_cm *cm, int rx_fd)
{
	int fd = fcntl(rx_fd, F_DUPFD_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	rc = vb_gsi_open(fd, &cm->gsi);
	if (rc)
		return rc;
	rc = await(cm, vb_gsi_fd(cm->gsi));
	if (rc) {
		vb_gsi_close(cm->gsi);
		cm->gsi = NULL;
	}
	return rc;
}

void vb_host_cm_attach(struct vb_host_cm *cm, int rx_fd, vb_time now)
{
	int rc;

	if (cm->gsi || now < cm->attach_at)
		return;
	cm->attach_at = now + ATTACH_PAUSE;
	rc = attach_gsi(cm, rx_fd);
	if (rc)
		vb_log(LOG_WARN,
		       "broker: the connection manager cannot use slot 0: %s",
		       strerror(-rc));
}

/* Opens the epoll set of @cm and its table of fabrics' adapters. 0 or -errno.
 * The caller makes the state machine. */
static int open_parts(struct vb_host_cm *cm)
{
	int rc;

	cm->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (cm->epoll < 0)
		return -errno;
	rc = vb_host_cm_open_places(cm);
	if (rc == 0)
		rc = await(cm, vb_places_fd(cm->adapters));
	if (rc) {
		vb_host_cm_close_places(cm);
		close(cm->epoll);
	}
	return rc;
}

int vb_host_cm_create(bool (*owns)(void *arg, const struct vb_process *who,
				   uint32_t qpn),
		      void *arg, vb_time now, struct vb_host_cm **made)
{
	struct vb_host_cm *cm = calloc(1, sizeof(*cm));
	const struct vb_cm_ops ops = { .request = vb_host_cm_on_request,
				       .happen = vb_host_cm_on_happen,
				       .arg = cm,
				       .out = { send_cm_mad, cm },
				       .random = vb_rand32 };

	int rc;

	if (!cm)
		return -ENOMEM;
	rc = open_parts(cm);
	if (rc) {
		free(cm);
		return rc;
	}
	cm->engine = vb_cm_create(&ops);
	if (!cm->engine) {
		vb_host_cm_close_places(cm);
		close(cm->epoll);
		free(cm);
		return -ENOMEM;
	}
	cm->begun = now;
	cm->owns = owns;
	cm->owns_arg = arg;
	cm->next_number = vb_rand32();
	cm->key = (uint64_t)vb_rand32() << 32 | vb_rand32();
	vb_cm_ports_init(&cm->ports);
	*made = cm;
	return 0;
}

void vb_host_cm_destroy(struct vb_host_cm *cm)
{
	vb_cm_destroy(cm->engine);
	vb_host_cm_close_places(cm);
	close(cm->epoll);
	vb_cm_ports_close(&cm->ports);
	vb_local_addrs_fini(&cm->places);
	if (cm->gsi)
		vb_gsi_close(cm->gsi);
	free(cm);
}

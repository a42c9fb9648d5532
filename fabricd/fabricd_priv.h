/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of a fabric's process: the network, its clients, and
 * commands. */
#ifndef FABRICD_FABRICD_PRIV_H
#define FABRICD_FABRICD_PRIV_H

#include <limits.h>

#include "base/chain.h"
#include "fabric/far.h"
#include "fabricd/fabricd.h"
#include "mgmt/nodes.h"
#include "wire/umad_ipc.h"

/* A watched descriptor of the process, and the function that handles its
 * events. */
struct fd_watch {
	int fd;
	/* Called when @w->fd is ready; @events as of epoll. It may free @w, but
	 * no other watch. */
	void (*ready)(struct fd_watch *w, uint32_t events, vb_time now);
};

struct vb_fabricd {
	const struct vb_topo *topo;
	struct vb_fab_net *net;
	struct vb_mgmt *mgmt;
	int epoll;
	struct fd_watch listener;
	struct fd_watch inotify;
	char dir[PATH_MAX]; /* the directory of the fabric's files */
	struct vb_chain *clients;
	unsigned client_count, clients_most;
	bool full; /* no further client fits, so the listener is not watched */
	struct vb_chain *issms;
	struct vb_chain *remotes; /* links to other processes */
	struct vb_chain *captures;
	uint64_t *marks; /* words that ports had sent at @marked_at; or NULL */
	vb_time marked_at;
};

/* Begin to watch w->fd for @events; with @again, change the events of a watched
 * descriptor. 0 or -errno. */
int vb_fabricd_watch(struct vb_fabricd *f, struct fd_watch *w, uint32_t events,
		     bool again);

/* Functions of fabricd/client.c. */
/* Raise RLIMIT_NOFILE as far as allowed. Returns how many clients the limit
 * allows. */
unsigned vb_fabricd_clients_most(void);
void vb_fabricd_accept(struct fd_watch *w, uint32_t events, vb_time now);
void vb_fabricd_close_clients(struct vb_fabricd *f);
/* The function deliver() of struct vb_mgmt_ops; @client is a struct client. */
void vb_fabricd_deliver(void *arg, void *client,
			const struct vb_mad_delivery *d);

/* Functions of fabricd/issm.c: the files that subnet managers hold open. */
int vb_fabricd_issm_open(struct vb_fabricd *f);
void vb_fabricd_issm_close(struct vb_fabricd *f);
/* Write the name of the port's file to @path; make the file if it is missing.
 * False: it cannot be made. */
bool vb_fabricd_issm_path(struct vb_fabricd *f, struct vb_fab_node *node,
			  uint8_t port, char path[VB_UMAD_PATH]);

/* fabricd/remote.c: links to other processes. */
#define VB_REMOTE_TEXT 384
/* 0; -EINVAL, or another -errno, and @error. */
int vb_fabricd_remotes_open(struct vb_fabricd *f, char error[VB_TOPO_ERROR],
			    vb_time now);
void vb_fabricd_remotes_close(struct vb_fabricd *f);
/* Send what frames were gathered, and act on time. Returns when to come back.
 */
vb_time vb_fabricd_remotes_run(struct vb_fabricd *f, vb_time now);
/* For struct vb_fab_ops and FAB_EV_FAR. */
void vb_fabricd_carry(void *arg, struct vb_fab_node *node, uint8_t port,
		      const uint8_t *bytes, size_t len, vb_time now);
void vb_fabricd_far_changed(struct vb_fabricd *f, struct vb_fab_node *node,
			    uint8_t port, vb_time now);
/* "udp HOST:PORT, up". False: the port has no link to another process. */
bool vb_fabricd_remote_text(const struct vb_fabricd *f,
			    const struct vb_fab_node *node, uint8_t port,
			    char text[VB_REMOTE_TEXT]);
/* NULL: the port has no such link. */
const struct vb_far_status *
vb_fabricd_remote_status(const struct vb_fabricd *f,
			 const struct vb_fab_node *node, uint8_t port);

/* fabricd/command.c: run @text, and write the answer to @to. 0, or -EINVAL and
 * @error. */
int vb_fabricd_do(struct vb_fabricd *f, const char *text, FILE *to,
		  char error[VB_TOPO_ERROR], vb_time now);

/* Returns the node of the network that has the name @name, by the rules of
 * vb_topo_find(). */
struct vb_fab_node *vb_fabricd_node(const struct vb_fabricd *f,
				    const char *name);
/* The nominal Gbit/s of a port's link, coding included: 4X EDR is 100. 0: the
 * link is down. */
unsigned vb_fabricd_rate(const struct vb_fab_port *p);

/* fabricd/command.c: words for people. */
const char *vb_fabricd_state_name(unsigned state);
const char *vb_fabricd_kind_name(unsigned kind);

#endif

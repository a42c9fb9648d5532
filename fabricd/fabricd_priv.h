/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of a fabric's process: the network, its clients, and
 * commands. */
#ifndef FABRICD_FABRICD_PRIV_H
#define FABRICD_FABRICD_PRIV_H

#include <limits.h>

#include "base/chain.h"
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

struct verbs_program;
struct vb_fabricd_verbs_adapter;

/* The programs that use verbs. */
struct verbs_state {
	struct vb_fabricd_verbs_adapter **adapter; /* of each node; or NULL */
	struct vb_chain *busy; /* programs whose rings are looked at */
	struct vb_chain *gone; /* programs that have ended */
	unsigned full;	       /* programs whose rings have no room */
	vb_time look_at;       /* when to look at those again */
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
	struct verbs_state verbs;
};

/* Begin to watch w->fd for @events; with @again, change the events of a watched
 * descriptor. 0 or -errno. */
int vb_fabricd_watch(struct vb_fabricd *f, struct fd_watch *w, uint32_t events,
		     bool again);
/* Watch w->fd no more. */
void vb_fabricd_unwatch(struct vb_fabricd *f, struct fd_watch *w);

/* Functions of fabricd/client.c. */
/* Raise RLIMIT_NOFILE as far as allowed. Returns how many clients the limit
 * allows. */
unsigned vb_fabricd_clients_most(void);
void vb_fabricd_accept(struct fd_watch *w, uint32_t events, vb_time now);
void vb_fabricd_close_clients(struct vb_fabricd *f);
/* Send a message of @len bytes to @client, a struct client, now or when it
 * reads. It is lost if too much waits already. */
void vb_fabricd_mail(void *client, const void *bytes, size_t len);
/* End the connection of @client soon: it breaks the rules. */
void vb_fabricd_expel(void *client);
/* For struct vb_mgmt_ops: @client is a struct client. */
void vb_fabricd_deliver(void *arg, void *client,
			const struct vb_mad_delivery *d);

/* fabricd/verbs.c */
/* The program @client, whose socket is @fd, attaches to @port of @node; this
 * answers it. 0, and the caller ends with vb_fabricd_verbs_detach(); -ENODEV:
 * not the port of an adapter; -EUSERS: 511 programs are there; else -errno,
 * and the caller answers. */
VB_MUST_CHECK int vb_fabricd_verbs_attach(struct vb_fabricd *f, void *client,
					  int fd, struct vb_fab_node *node,
					  uint8_t port,
					  struct verbs_program **p);
void vb_fabricd_verbs_detach(struct verbs_program *p);
/* A message of an attached program. False: it breaks the rules. */
VB_MUST_CHECK bool vb_fabricd_verbs_message(struct verbs_program *p,
					    const uint8_t *bytes, size_t len);
/* Something of the port may have changed: tell the programs there. */
void vb_fabricd_verbs_changed(struct vb_fabricd *f,
			      const struct vb_fab_node *node, uint8_t port);
/* All programs have left: free what is left. */
void vb_fabricd_verbs_free(struct vb_fabricd *f);

/* fabricd/verbs_frames.c */
/* A frame for another queue pair than management's has come to @port; as
 * on_local() of struct vb_fab_ops. */
enum vb_fab_taken vb_fabricd_verbs_hear(struct vb_fabricd *f,
					const struct vb_fab_node *node,
					uint8_t port, const uint8_t *bytes,
					size_t len, vb_time now);
/* FAB_EV_ROOM at @port. */
void vb_fabricd_verbs_room(struct vb_fabricd *f, const struct vb_fab_node *node,
			   uint8_t port, vb_time now);
/* Take what busy programs have sent. True: there was something. */
bool vb_fabricd_verbs_run(struct vb_fabricd *f, vb_time now);
/* When to call it even if no program is busy; VB_NEVER. */
vb_time vb_fabricd_verbs_next(const struct vb_fabricd *f);

/* fabricd/issm.c: the files that subnet managers hold open. */
int vb_fabricd_issm_open(struct vb_fabricd *f);
void vb_fabricd_issm_close(struct vb_fabricd *f);
/* Write the name of the port's file to @path; make the file if it is missing.
 * False: it cannot be made. */
bool vb_fabricd_issm_path(struct vb_fabricd *f, struct vb_fab_node *node,
			  uint8_t port, char path[VB_UMAD_PATH]);

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

#endif

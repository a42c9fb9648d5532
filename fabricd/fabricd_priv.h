/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of a fabric's process: the network, its clients, and
 * commands. */
#ifndef FABRICD_FABRICD_PRIV_H
#define FABRICD_FABRICD_PRIV_H

#include <limits.h>
#include <sys/types.h>

#include "base/chain.h"
#include "base/timer.h"
#include "engine/fabric_path.h"
#include "fabric/far.h"
#include "fabricd/fabricd.h"
#include "mgmt/nodes.h"
#include "wire/verbs_ipc.h"

/* A watched descriptor of the process, and the function that handles its
 * events. */
struct fd_watch {
	int fd;
	/* Called when @w->fd is ready; @events as of epoll. It may free @w, but
	 * no other watch. */
	void (*ready)(struct fd_watch *w, uint32_t events, vb_time now);
};

/* What the process does later (fabricd/due.c). */
struct fd_later {
	struct vb_timer timer;
	void (*fire)(struct fd_later *l, vb_time now);
};
#define VB_FABRICD_LATERS 3 /* how many there are */

struct fd_host;
struct fd_manager;
struct verbs_program;
struct vb_fabricd_verbs_adapter;

/* The programs that use verbs. */
struct verbs_state {
	/* by the index of the node; NULL: no program has attached to it */
	struct vb_fabricd_verbs_adapter **adapter;
	uint32_t adapters; /* entries of @adapter, fewer than nodes or as many
			    */
	struct vb_chain *busy; /* programs whose rings are looked at */
	vb_time shares_until;  /* a program shares this process's processor */
	struct vb_chain *gone; /* programs that have ended */
	unsigned full;	       /* programs whose rings have no room */
	vb_time look_at;       /* when to look at those again */
};

struct vb_fabricd {
	struct vb_topo *topo; /* node i is node i of @net */
	struct vb_fab_net *net;
	struct vb_mgmt *mgmt;
	int epoll;
	struct fd_watch listener;
	struct fd_watch inotify;
	char dir[PATH_MAX]; /* the directory of the fabric's files */
	char name[VB_FABRIC_NAME + 1];
	struct vb_chain *clients;
	unsigned client_count, clients_most;
	unsigned busy;		   /* clients that are not the subnet manager */
	bool full;		   /* the listener is not watched */
	struct fd_later accept_on; /* @full: watch it again */
	vb_time linger;		   /* without busy clients; VB_NEVER */
	struct fd_later idle;
	bool ended; /* it has been idle for too long */
	struct vb_timers due;
	struct vb_chain *hosts;	    /* that have joined */
	struct fd_manager *manager; /* NULL: none was asked for */
	struct vb_chain *issms;
	struct vb_chain *remotes; /* links to other processes */
	struct vb_chain *captures;
	/* The words that each port had sent at the time @marked_at, port 0 of a
	 * node first, in the order of the nodes. */
	uint64_t *marks;
	uint32_t mark_count; /* number of ports in @marks */
	vb_time marked_at;
	struct verbs_state verbs;
};

/* Begin to watch w->fd for @events; with @again, change the events of a watched
 * descriptor. 0 or -errno. */
int vb_fabricd_watch(struct vb_fabricd *f, struct fd_watch *w, uint32_t events,
		     bool again);
/* Watch w->fd no more. */
void vb_fabricd_unwatch(struct vb_fabricd *f, struct fd_watch *w);

/* Add the node @t, the last one of the topology, to network and management. 0
 * or -errno, and nothing has changed. */
int vb_fabricd_add_node(struct vb_fabricd *f, const struct vb_topo_node *t);

/* Functions of fabricd/due.c. */
void vb_fabricd_later_init(struct fd_later *l,
			   void (*fire)(struct fd_later *l, vb_time now));
/* Call l->fire at @at, and not at the time that was set before. */
void vb_fabricd_later(struct vb_fabricd *f, struct fd_later *l, vb_time at);
void vb_fabricd_never(struct vb_fabricd *f, struct fd_later *l);
/* Do what is due. How long until the next is; VB_NEVER. */
vb_time vb_fabricd_fire(struct vb_fabricd *f, vb_time now);

/* Functions of fabricd/join.c. */
/* The program's host, whose network namespace has the number that the text
 * @space says, gets an adapter; the answer is written to @to: its node, the
 * state of its port ("active", "waits"), and whether the fabric has a subnet
 * manager of its own ("managed", "alone"). *@host: NULL, or the program has
 * joined already; a program that leaves calls vb_fabricd_leave(). 0; -EINVAL
 * and @error; -ENOMEM. */
int vb_fabricd_join(struct vb_fabricd *f, struct fd_host **host,
		    const char *space, FILE *to, char error[VB_TOPO_ERROR],
		    vb_time now);
void vb_fabricd_leave(struct fd_host *host, vb_time now);
void vb_fabricd_free_hosts(struct vb_fabricd *f);

/* fabricd/manager.c: the subnet manager that the fabric has started. */
bool vb_fabricd_is_managed(const struct vb_fabricd *f);
/* Is @pid the subnet manager's process? */
bool vb_fabricd_is_manager(const struct vb_fabricd *f, pid_t pid);
/* Ask it to end; f->ended becomes true then. False: it does not run. */
bool vb_fabricd_stop_manager(struct vb_fabricd *f);
/* Kill it if it still runs; its files, but for its log, are removed. */
void vb_fabricd_end_manager(struct vb_fabricd *f);

/* Functions of fabricd/query.c. */
/* Has the node an agent there: an adapter at 1..ports, a switch at 0? */
bool vb_fabricd_has_own_port(const struct vb_fab_node *n, unsigned port);
/* Describe the node, and @port if it has that one. */
void vb_fabricd_describe(struct vb_fabricd *f, struct vb_fab_node *n,
			 uint8_t port, struct vb_umad_info *i, vb_time now);

/* Functions of fabricd/accept.c. */
/* Raise RLIMIT_NOFILE as far as allowed. Returns how many clients the limit
 * allows. */
unsigned vb_fabricd_clients_most(void);
void vb_fabricd_accept(struct fd_watch *w, uint32_t events, vb_time now);
/* Watch the listener, or no longer: epoll would report it again and again while
 * a program waits that cannot be accepted. */
void vb_fabricd_accept_more(struct vb_fabricd *f, bool more);
/* f->accept_on has expired: look for programs that wait. */
void vb_fabricd_accept_again(struct fd_later *l, vb_time now);

/* Functions of fabricd/client.c. */
/* Serve the program at the other end of @fd, which this owns then. @manager: it
 * is the subnet manager of the fabric's own. False: no memory, and @fd stays
 * the caller's. */
VB_MUST_CHECK bool vb_fabricd_take_client(struct vb_fabricd *f, int fd,
					  bool manager, vb_time now);
void vb_fabricd_close_clients(struct vb_fabricd *f);
/* Send a message of @len bytes to @client, a struct client, now or when it
 * reads. It is lost if too much waits already. */
void vb_fabricd_mail(void *client, const void *bytes, size_t len);
/* End the connection of @client soon: it breaks the rules. */
void vb_fabricd_expel(void *client);
/* The function deliver() of struct vb_mgmt_ops; @client is a struct client. */
void vb_fabricd_deliver(void *arg, void *client,
			const struct vb_mad_delivery *d);

/* Functions of fabricd/verbs.c. */
/* The program @client, whose socket is @fd, attaches to @port of @node; this
 * answers it. 0, and the caller ends with vb_fabricd_verbs_detach(); -ENODEV:
 * not the port of an adapter; -EUSERS: 511 programs are there; else -errno,
 * and the caller answers. */
VB_MUST_CHECK int vb_fabricd_verbs_attach(struct vb_fabricd *f, void *client,
					  int fd, struct vb_fab_node *node,
					  uint8_t port,
					  struct verbs_program **p);
void vb_fabricd_verbs_detach(struct verbs_program *p);
/* The program wants frames to the multicast LID @g->mlid, or (VERBS_LEAVE)
 * wants them no more. 0; -EINVAL: @g breaks the rules; -ENOSPC: the program has
 * 512 groups; -ENOMEM. */
VB_MUST_CHECK int vb_fabricd_verbs_group(struct verbs_program *p,
					 const struct vb_verbs_group *g);
/* Something of the port may have changed: tell the programs there. */
void vb_fabricd_verbs_changed(struct vb_fabricd *f,
			      const struct vb_fab_node *node, uint8_t port);
/* All programs have left: free what is left. */
void vb_fabricd_verbs_free(struct vb_fabricd *f);

/* Functions of fabricd/verbs_frames.c. */
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
/* Ask all busy programs to ring. True: one of them has sent a frame meanwhile.
 */
VB_MUST_CHECK bool vb_fabricd_verbs_rest(struct vb_fabricd *f);
/* When to call it even if no program is busy; VB_NEVER. */
vb_time vb_fabricd_verbs_next(const struct vb_fabricd *f);

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

/* fabricd/command.c: words for people. */
const char *vb_fabricd_state_name(unsigned state);
const char *vb_fabricd_kind_name(unsigned kind);

#endif

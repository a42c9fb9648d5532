/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of a fabric's process: the network, the connections of
 * programs, and commands. */
#ifndef FABRICD_FABRICD_PRIV_H
#define FABRICD_FABRICD_PRIV_H

#include <limits.h>
#include <sys/types.h>

#include "base/chain.h"
#include "base/timer.h"
#include "engine/fabric_path.h"
#include "fabric/far.h"
#include "fabricd/fabricd.h"
#include "fabricd/looks.h"
#include "mgmt/nodes.h"
#include "wire/verbs_ipc.h"

/* A watched descriptor of the process, and the function that handles its
 * events. */
struct fd_watch {
	int fd;
	/* Called when @w->fd is ready; @events are epoll's. It may free @w, but
	 * no other watch. */
	void (*ready)(struct fd_watch *w, uint32_t events, vb_time now);
};

/* A timer of the process: @fire is called when it expires (fabricd/due.c). */
struct fd_later {
	struct vb_timer timer;
	void (*fire)(struct fd_later *l, vb_time now);
};
/* most timers that are set at a time, without one for each subnet manager */
#define VB_FABRICD_LATERS 2

struct fd_host;
struct fd_manager;
struct verbs_program;
struct verbs_watch;
struct vb_fabricd_verbs_adapter;

/* What the process keeps of the programs that use verbs. */
struct verbs_state {
	/* by index of the node: the adapter's programs; NULL: no program has
	 * attached to it */
	struct vb_fabricd_verbs_adapter **adapter;
	/* entries of @adapter; nodes that have joined later have none yet */
	uint32_t adapters;
	/* list of the programs whose rings this process looks at without being
	 * rung */
	struct vb_chain *busy;
	/* list of the programs that sleep, have got frames, and were not rung
	 * yet */
	struct vb_chain *owed;
	/* a program that was busy lately ran last on this process's
	 * processor */
	bool shares;
	/* the program that got a frame last, if it was awake then, and whether
	 * this process awaits its answer; NULL: there is none */
	struct verbs_program *given;
	struct vb_looks looks;
	/* list of the programs that have ended, to be freed */
	struct vb_chain *gone;
	/* number of the programs whose rings of received frames are full */
	unsigned full;
	/* when to look again whether the full rings have room */
	vb_time look_at;
};

struct vb_fabricd {
	struct vb_topo *topo; /* the topology; its node i is node i of @net */
	struct vb_fab_net *net;
	struct vb_mgmt *mgmt;
	int epoll;
	struct fd_watch listener;
	struct fd_watch inotify;
	char dir[PATH_MAX]; /* the directory of the fabric's files */
	char name[VB_FABRIC_NAME + 1];
	struct vb_chain *clients;
	unsigned client_count, clients_most;
	/* number of the clients that are not subnet managers */
	unsigned busy;
	/* no further client can be accepted, and the listener is not watched */
	bool full;
	/* if @full: the timer at which the listener is watched again */
	struct fd_later accept_on;
	/* the fabric ends when it has had no client but the subnet manager for
	 * this time; VB_NEVER: it does not */
	vb_time linger;
	struct fd_later idle;
	bool ended; /* the fabric has been idle for @linger and is to end */
	struct vb_timers due;
	struct vb_chain *hosts; /* list of the hosts that have joined */
	/* list of the subnet managers that the fabric has started, one for
	 * each subnet; NULL: it was not asked to */
	struct fd_manager *managers;
	struct vb_chain *issms;
	struct vb_chain *remotes; /* list of the links to other processes */
	struct vb_chain *ethers;  /* list of the switches with Ethernet ports */
	struct vb_chain *captures;
	/* The 4-byte words that each port had sent at the time @marked_at, port
	 * 0 of a node first, in the order of the nodes; NULL: no mark. */
	uint64_t *marks;
	uint32_t mark_count; /* number of ports in @marks */
	vb_time marked_at;
	struct verbs_state verbs;
};

/* Begin to watch w->fd for @events; if @again, change the events of a
 * descriptor that is watched already. Returns 0 or -errno. */
int vb_fabricd_watch(struct vb_fabricd *f, struct fd_watch *w, uint32_t events,
		     bool again);
/* Stop watching w->fd. */
void vb_fabricd_unwatch(struct vb_fabricd *f, struct fd_watch *w);

/* Add the node @t, the last one of the topology, to the network and to the
 * management. Returns 0, or -errno, and then nothing has changed. */
int vb_fabricd_add_node(struct vb_fabricd *f, const struct vb_topo_node *t);
/* Give a router the routes of @s; does nothing to other nodes. */
void vb_fabricd_set_routes(struct vb_fab_node *n, const struct vb_topo_spec *s);

/* Functions of fabricd/due.c. */
void vb_fabricd_later_init(struct fd_later *l,
			   void (*fire)(struct fd_later *l, vb_time now));
/* Set the timer: call l->fire at the time @at. A time that was set before no
 * longer counts. */
void vb_fabricd_later(struct vb_fabricd *f, struct fd_later *l, vb_time at);
void vb_fabricd_never(struct vb_fabricd *f, struct fd_later *l);
/* Call the functions of all timers that have expired. Returns the time until
 * the next timer expires; VB_NEVER: no timer is set. */
vb_time vb_fabricd_fire(struct vb_fabricd *f, vb_time now);

/* Functions of fabricd/join.c. */
/* Give the program's host an adapter; a host is a network namespace, and the
 * text @space is the namespace's number. Writes the answer to @to: the
 * adapter's id, the state of its port ("active" or "waits"), and whether the
 * fabric has a subnet manager of its own ("managed" or "alone"). *@host: NULL
 * at the program's first call; this sets it. When the program ends, the caller
 * calls vb_fabricd_leave(). Returns 0; -EINVAL and @error; -ENOMEM. */
int vb_fabricd_join(struct vb_fabricd *f, struct fd_host **host,
		    const char *space, FILE *to, char error[VB_TOPO_ERROR],
		    vb_time now);
void vb_fabricd_leave(struct fd_host *host, vb_time now);
void vb_fabricd_free_hosts(struct vb_fabricd *f);

/* fabricd/manager.c: the subnet managers that the fabric has started. True if
 * there are some and none has been given up. */
bool vb_fabricd_is_managed(const struct vb_fabricd *f);
/* True if @pid is a subnet manager's process. */
bool vb_fabricd_is_manager(const struct vb_fabricd *f, pid_t pid);
/* Ask the subnet managers to end. When all have ended, f->ended becomes true.
 * False: none runs. */
bool vb_fabricd_stop_managers(struct vb_fabricd *f);
/* Kill the subnet managers that still run, and remove their files but for their
 * logs. */
void vb_fabricd_end_managers(struct vb_fabricd *f);

/* Functions of fabricd/query.c. */
/* True if the node has a management agent at @port: an adapter has one at each
 * of its ports, a switch only at port 0. */
bool vb_fabricd_has_own_port(const struct vb_fab_node *n, unsigned port);
/* Describe the node in @i, and its port @port if the node has an agent at that
 * port. */
void vb_fabricd_describe(struct vb_fabricd *f, struct vb_fab_node *n,
			 uint8_t port, struct vb_umad_info *i, vb_time now);

/* Functions of fabricd/accept.c. */
/* Raise RLIMIT_NOFILE as far as the system allows. Returns how many clients the
 * process then has descriptors for. */
unsigned vb_fabricd_clients_most(void);
void vb_fabricd_accept(struct fd_watch *w, uint32_t events, vb_time now);
/* Watch the listener (@more), or stop watching it: while a program waits that
 * cannot be accepted, epoll would report the listener again and again. */
void vb_fabricd_accept_more(struct vb_fabricd *f, bool more);
/* Called when the timer f->accept_on has expired: watch the listener again. */
void vb_fabricd_accept_again(struct fd_later *l, vb_time now);

/* Functions of fabricd/client.c. */
/* Serve the program at the other end of @fd, which this then owns. @manager:
 * the program is the subnet manager that the fabric has started. False: no
 * memory, and the caller still owns @fd. */
VB_MUST_CHECK bool vb_fabricd_take_client(struct vb_fabricd *f, int fd,
					  bool manager, vb_time now);
void vb_fabricd_close_clients(struct vb_fabricd *f);
/* Send a message of @len bytes to @client, a struct client. If its socket has
 * no room, the message waits until the program reads; if too much waits
 * already, the message is dropped. */
void vb_fabricd_mail(void *client, const void *bytes, size_t len);
/* Begin to end the connection of @client, a struct client, because its program
 * breaks the rules. */
void vb_fabricd_expel(void *client);
/* The function deliver() of struct vb_mgmt_ops; @client is a struct client. */
void vb_fabricd_deliver(void *arg, void *client,
			const struct vb_mad_delivery *d);

/* Functions of fabricd/verbs.c. */
/* Attach the program @client, whose socket is @fd, to the port w->port of
 * @node, and answer the program. Returns 0, and the caller ends with
 * vb_fabricd_verbs_detach(); or an error, which the caller sends as the answer.
 * -ENODEV: it is not a port of an adapter; -EUSERS: 511 programs are attached
 * to the adapter; -EADDRINUSE: one of them has the slot w->slot; -EINVAL: there
 * is no such slot; else -errno. */
VB_MUST_CHECK int vb_fabricd_verbs_attach(struct vb_fabricd *f, void *client,
					  int fd, struct vb_fab_node *node,
					  const struct vb_umad_where *w,
					  struct verbs_program **p);
void vb_fabricd_verbs_detach(struct verbs_program *p);
/* Let the program receive frames to the multicast LID @g->mlid, or
 * (VERBS_LEAVE) no longer. Returns 0; -EINVAL: @g breaks the rules; -ENOSPC:
 * the program has 512 groups; -ENOMEM. */
VB_MUST_CHECK int vb_fabricd_verbs_group(struct verbs_program *p,
					 const struct vb_verbs_group *g);
/* Tell @client, a struct client, what @port of @node has, now and whenever that
 * has changed, until vb_fabricd_verbs_unwatch(). NULL: no memory. */
VB_MUST_CHECK struct verbs_watch *
vb_fabricd_verbs_watch(struct vb_fabricd *f, void *client,
		       struct vb_fab_node *node, uint8_t port);
void vb_fabricd_verbs_unwatch(struct verbs_watch *w);
/* Tell the programs that are attached to, or watch, @port of @node how the port
 * is now, if that has changed. */
void vb_fabricd_verbs_changed(struct vb_fabricd *f,
			      const struct vb_fab_node *node, uint8_t port);
/* Free what is left when all programs have ended. */
void vb_fabricd_verbs_free(struct vb_fabricd *f);

/* Functions of fabricd/verbs_frames.c. */
/* Give a frame that has come to @port to the program that has the frame's queue
 * pair, which is not one of management's. Arguments and result are those of
 * on_local() of struct vb_fab_ops. */
enum vb_fab_taken vb_fabricd_verbs_hear(struct vb_fabricd *f,
					const struct vb_fab_node *node,
					uint8_t port, const uint8_t *bytes,
					size_t len, vb_time now);
/* @port has room for frames again (FAB_EV_ROOM): let the programs send whose
 * frames waited for it. */
void vb_fabricd_verbs_room(struct vb_fabricd *f, const struct vb_fab_node *node,
			   uint8_t port, vb_time now);
/* Move the frames that busy programs have put into their rings into the fabric.
 * True: there was a frame. */
bool vb_fabricd_verbs_run(struct vb_fabricd *f, vb_time now);
/* Ring the programs that sleep and have got frames: all of them if this process
 * has nothing else to do now (@idle), else those that have waited long or have
 * got many. */
void vb_fabricd_verbs_ring(struct vb_fabricd *f, bool idle, vb_time now);
/* Did a program that was busy lately last run on the processor @processor, which
 * is this process's? */
bool vb_fabricd_verbs_share(const struct vb_fabricd *f, int processor);
/* Shall this process, which runs on @processor, await the answer of a program
 * (fabricd/looks.h)? */
bool vb_fabricd_verbs_await(struct vb_fabricd *f, int processor, vb_time now);
/* Ask all busy programs to ring when they send the next frame, so that the
 * process may sleep. True: a program has sent a frame meanwhile, so the process
 * must not sleep. */
VB_MUST_CHECK bool vb_fabricd_verbs_rest(struct vb_fabricd *f);
/* Returns when vb_fabricd_verbs_run() must be called even if no program is
 * busy; VB_NEVER: it need not. */
vb_time vb_fabricd_verbs_next(const struct vb_fabricd *f);

/* Functions of fabricd/issm.c: the files that subnet managers hold open while
 * they run. */
int vb_fabricd_issm_open(struct vb_fabricd *f);
void vb_fabricd_issm_close(struct vb_fabricd *f);
/* Write to @path the name of the file that a subnet manager at @port holds
 * open; make the file if it is missing. False: it cannot be made. */
bool vb_fabricd_issm_path(struct vb_fabricd *f, struct vb_fab_node *node,
			  uint8_t port, char path[VB_UMAD_PATH]);

/* Functions of fabricd/remote.c: links to other processes. */
#define VB_REMOTE_TEXT 384
/* Open the sockets of all links to other processes. Returns 0; -EINVAL or
 * another -errno, and @error. */
int vb_fabricd_remotes_open(struct vb_fabricd *f, char error[VB_TOPO_ERROR],
			    vb_time now);
void vb_fabricd_remotes_close(struct vb_fabricd *f);
/* Send the frames that were gathered for other processes, and act on timeouts.
 * Returns when to call this again. */
vb_time vb_fabricd_remotes_run(struct vb_fabricd *f, vb_time now);
/* The function on_far() of struct vb_fab_ops: send a frame or link packet that
 * leaves @port to the process at the other end of the link. */
void vb_fabricd_carry(void *arg, struct vb_fab_node *node, uint8_t port,
		      const uint8_t *bytes, size_t len, vb_time now);
void vb_fabricd_far_changed(struct vb_fabricd *f, struct vb_fab_node *node,
			    uint8_t port, vb_time now);
/* Write the address and the state of the other process to @text, such as "udp
 * HOST:PORT, up". False: the port has no link to another process. */
bool vb_fabricd_remote_text(const struct vb_fabricd *f,
			    const struct vb_fab_node *node, uint8_t port,
			    char text[VB_REMOTE_TEXT]);
/* Returns the state and the counters of the port's link to another process;
 * NULL: it has no such link. */
const struct vb_far_status *
vb_fabricd_remote_status(const struct vb_fabricd *f,
			 const struct vb_fab_node *node, uint8_t port);

/* Functions of fabricd/ether.c: the Ethernet ports of switches. A port is named
 * by a text, "E2" or "2". */
/* Give the switch with the index @node @ports Ethernet ports. Returns 0 or
 * -ENOMEM. */
VB_MUST_CHECK int vb_fabricd_ether_add(struct vb_fabricd *f, uint32_t node,
				       unsigned ports);
void vb_fabricd_ethers_close(struct vb_fabricd *f);
/* Attach a copy of @fd, a TAP interface or a SOCK_SEQPACKET socket of frames
 * that is called @name, to @port; "" is the first free one. Writes the port's
 * name to @to. Returns 0; -EINVAL and @error. */
VB_MUST_CHECK int vb_fabricd_ether_attach(struct vb_fabricd *f,
					  const struct vb_fab_node *node,
					  const char *port, int fd,
					  const char *name, FILE *to,
					  char error[VB_TOPO_ERROR]);
/* Detach what is attached to @port. A TAP interface disappears with that.
 * Returns 0; -EINVAL and @error. */
int vb_fabricd_ether_detach(struct vb_fabricd *f,
			    const struct vb_fab_node *node, const char *port,
			    char error[VB_TOPO_ERROR]);
/* Pull the cable of @port, or (@in) plug it in again. Returns 0; -EINVAL and
 * @error. */
int vb_fabricd_ether_plug(struct vb_fabricd *f, const struct vb_fab_node *node,
			  const char *port, bool in, char error[VB_TOPO_ERROR]);
/* Write to @to what the node's Ethernet ports are: for people those that
 * something is attached to, a line each; as a member of a JSON object all of
 * them. Nothing for a node that has none. */
void vb_fabricd_ether_text(const struct vb_fabricd *f,
			   const struct vb_fab_node *node, FILE *to,
			   vb_time now);
void vb_fabricd_ether_json(const struct vb_fabricd *f,
			   const struct vb_fab_node *node, FILE *to,
			   vb_time now);
/* Write the addresses that the switch has learned, a line each. Returns 0;
 * -EINVAL and @error: it has no Ethernet ports. */
int vb_fabricd_ether_macs(const struct vb_fabricd *f,
			  const struct vb_fab_node *node, FILE *to,
			  char error[VB_TOPO_ERROR], vb_time now);

/* fabricd/command.c: carry out the command @text, and write its answer to @to.
 * @fd: the descriptor that came with it, which stays the caller's; -1: none.
 * Returns 0; -EINVAL and @error. */
int vb_fabricd_do(struct vb_fabricd *f, const char *text, int fd, FILE *to,
		  char error[VB_TOPO_ERROR], vb_time now);

/* Returns the node of the network that @name means by the rules of
 * vb_topo_find(); NULL: there is none. */
struct vb_fab_node *vb_fabricd_node(const struct vb_fabricd *f,
				    const char *name);

/* fabricd/command.c: the names of a port's states (PortInfo's codes) and of the
 * kinds of nodes (enum vb_fab_kind), for people to read. */
const char *vb_fabricd_state_name(unsigned state);
const char *vb_fabricd_kind_name(unsigned kind);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the host's connection manager, which only the files broker/cm*.c
 * share. Only the broker's one thread uses it, so there are no locks. */
#ifndef BROKER_CM_PRIV_H
#define BROKER_CM_PRIV_H

#include "broker/cm.h"
#include "broker/cm_header.h"
#include "broker/cm_ports.h"
#include "broker/gsi.h"
#include "broker/local_addr.h"
#include "broker/outbox.h"
#include "broker/sa_group.h"
#include "mgmt/cm_ib.h"

#define VB_CM_ID_BUCKETS 16384

enum vb_cm_id_state { ID_BOUND, ID_LISTENING, ID_CONN };

/* What became of the alternate path in a REQ that came. */
enum vb_cm_alternate {
	ALTERNATE_NONE,	   /* the REQ has none */
	ALTERNATE_REFUSED, /* no port of the program has its end */
	ALTERNATE_OFFERED, /* the program was told of it */
};

/* An id of a program: one struct rdma_cm_id. */
struct vb_cm_id {
	struct vb_cm_client *client;
	uint32_t number;
	enum vb_cm_id_state state;
	enum vb_ipc_cm_type type;
	/* The port to which the id is bound. Number 0: none; an id that was
	 * made for an incoming REQ uses its listener's port. */
	struct vb_cm_port port;
	uint64_t service; /* ID of the service for which a SIDR REQ asks */
	enum vb_cm_alternate alternate;
	unsigned backlog, pending;
	/* number of the listening id in whose backlog this id waits to be
	 * accepted; 0: this id is in no backlog */
	uint32_t listener;
	struct vb_cm_conn *conn;
	/* the path, or the service, for which the id has asked; NULL: none */
	struct vb_cm_route *route;
	struct vb_cm_id *next; /* the next id in the bucket of the hash table */
	/* links in the client's list of ids */
	struct vb_cm_id *next_own, **prev_own_at;
};

struct vb_cm_client {
	struct vb_host_cm *cm;
	struct vb_process who;
	struct vb_user *user;
	unsigned ids;
	struct vb_cm_id *own;
	/* The places that the program may use: bit i is place i + 1. */
	uint64_t places;
	/* the program has adapters of fabrics only, which RoCEv2 does not
	 * reach */
	bool only_places;
	struct vb_outbox out;
};

struct vb_host_cm {
	bool (*owns)(void *arg, const struct vb_process *who, uint32_t qpn);
	void *owns_arg;
	struct vb_cm *engine;
	struct vb_gsi *gsi;
	/* the time before which the broker does not try to open @gsi again */
	vb_time attach_at;
	/* The adapters of fabrics, and their subnet administrators. */
	struct vb_places *adapters;
	struct vb_sa *sa;
	struct vb_sa_groups *groups;
	/* unused adapters of fabrics are kept until this time; VB_NEVER: there
	 * are no such adapters */
	vb_time adapters_until;
	/* an epoll set with every descriptor from which messages come */
	int epoll;
	/* @begun: the time when this manager began; @now: the time that the
	 * caller passed to the call now running */
	vb_time begun, now;
	uint32_t next_number;
	uint64_t key; /* the secret key of vb_hash() for ids */
	struct vb_cm_ports ports;
	struct vb_local_addrs places;
	struct vb_cm_id *buckets[VB_CM_ID_BUCKETS];
};

/* A function of cm.c: sends @m to the program, or queues it. */
void vb_cm_client_tell(struct vb_cm_client *c, const struct vb_ipc_cm *m);

/* Functions of cm_ids.c: ids with their ports, and the listeners' count of
 * requests. */
struct vb_cm_id *vb_cm_id_find(const struct vb_cm_client *c, uint32_t number);
/* Make an id. -ENOBUFS: the program, or its user, has as many ids as allowed;
 * -ENOMEM. */
VB_MUST_CHECK int vb_cm_id_make(struct vb_cm_client *c, uint32_t number,
				struct vb_cm_id **made);
/* Frees @id, and releases its port and its connection. */
void vb_cm_id_free(struct vb_cm_id *id);
/* Binds id->port; number 0 asks for any free port, and then becomes its number.
 * -ENOBUFS: the user's quota; else as vb_cm_ports_bind(). */
VB_MUST_CHECK int vb_cm_id_bind_port(struct vb_cm_id *id);
/* The program has answered the request @id, or the request has ended: its
 * listener no longer counts it. */
void vb_cm_id_leave_backlog(struct vb_cm_id *id);

/* Functions of cm_incoming.c, which make events for programs out of requests
 * that arrive and of what happens to connections. */
/* Returns an event for @id with no other field set. */
struct vb_ipc_cm vb_cm_id_event(const struct vb_cm_id *id,
				enum vb_ipc_cm_event e);
/* The two functions for struct vb_cm_ops; @arg is the struct vb_host_cm. */
unsigned vb_host_cm_on_request(void *arg, struct vb_cm_conn *c,
			       const struct vb_cm_msg *m);
void vb_host_cm_on_happen(void *arg, struct vb_cm_conn *c,
			  enum vb_cm_happening what, const struct vb_cm_msg *m);

/* Functions of cm_places.c: adapters of fabrics. */
/* Makes cm->adapters, cm->sa and cm->groups. 0 or -errno. */
VB_MUST_CHECK int vb_host_cm_open_places(struct vb_host_cm *cm);
void vb_host_cm_close_places(struct vb_host_cm *cm);
/* Run the timers of the places, which are adapters of fabrics, that are due at
 * cm->now. */
void vb_host_cm_tick_places(struct vb_host_cm *cm);
vb_time vb_host_cm_places_deadline(const struct vb_host_cm *cm);
/* Handle the messages PLACE, PATH, GROUP_JOIN and GROUP_LEAVE. PLACE keeps *@fd
 * and then sets it to -1. */
VB_MUST_CHECK int vb_cm_on_place(struct vb_cm_client *c,
				 const struct vb_ipc_cm *m, int *fd);
int vb_cm_on_path(struct vb_cm_client *c, const struct vb_ipc_cm *m);
int vb_cm_on_service(struct vb_cm_client *c, const struct vb_ipc_cm *m);
int vb_cm_on_group_join(struct vb_cm_client *c, const struct vb_ipc_cm *m);
int vb_cm_on_group_leave(struct vb_cm_client *c, const struct vb_ipc_cm *m);
/* The program @c no longer uses its places. */
void vb_cm_client_drop_places(struct vb_cm_client *c);
/* Ends the request of @id for a path, and its memberships in groups: call this
 * when the id ends. */
void vb_cm_id_leave_places(struct vb_cm_id *id);
/* Returns whether the program may use the place. */
static inline bool vb_cm_client_has_place(const struct vb_cm_client *c,
					  unsigned place)
{
	return place >= 1 && place <= VB_IPC_CM_PLACES &&
	       c->places >> (place - 1) & 1;
}
/* Returns whether one of the program's places has @gid. */
bool vb_cm_client_has_gid(const struct vb_cm_client *c,
			  const struct vb_gid *gid);
/* Returns whether the program may connect its queue pair @qpn by @place. */
bool vb_cm_client_owns(const struct vb_cm_client *c, unsigned place,
		       uint32_t qpn);

/* Functions of cm_alternate.c: alternate paths (IBA 12.6.5). */
/* Returns whether the alternate path in @m, a message of the program, leads
 * from a port that the program may use, or @m has none. */
bool vb_cm_alternate_is_own(const struct vb_cm_client *c,
			    const struct vb_ipc_cm *m);
/* Fills in @p, the alternate path of a REQ, from the alternate path in @m. */
void vb_cm_alternate_fill(const struct vb_host_cm *cm, struct vb_cm_path *p,
			  const struct vb_ipc_cm *m);
/* Describes the alternate path of the REQ @q, if it has one, in @e, the event
 * for @id. */
void vb_cm_alternate_offer(struct vb_cm_id *id, const struct vb_cm_req *q,
			   struct vb_ipc_cm *e);
/* Gives the connection of @id the alternate path in @m, if there is one, so
 * that its MADs may take that path. */
void vb_cm_alternate_use(const struct vb_cm_id *id, const struct vb_ipc_cm *m);
/* Returns what the REP says of the alternate path that the REQ named. @m: the
 * program's ACCEPT, which has the path again if the queue pair has it. */
enum vb_cm_failover vb_cm_alternate_answer(const struct vb_cm_id *id,
					   const struct vb_ipc_cm *m);

/* The codes by which a REQ names the transport of a queue pair's type (IBA
 * 12.6.5). */
struct vb_cm_transport_code {
	uint8_t transport, extended;
};
struct vb_cm_transport_code vb_cm_transport_of(enum vb_ipc_cm_type type);

/* Returns the bytes of private data that rdma_cm's header uses. */
static inline unsigned vb_cm_header_room(uint8_t flags)
{
	return flags & IPC_CM_PLAIN ? 0 : VB_CM_HEADER_BYTES;
}

#endif

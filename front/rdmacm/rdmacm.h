/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm over the broker's connection manager and the public face of
 * verbs. One session and one thread a process: the thread reads what the
 * broker says and puts it on event channels, whose descriptors are eventfds
 * that are readable while events wait.
 */
#ifndef FRONT_RDMACM_RDMACM_H
#define FRONT_RDMACM_RDMACM_H

#include <errno.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <semaphore.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/defs.h"
#include "wire/ipc_cm.h"

#define VB_EXPORT __attribute__((visibility("default")))

struct rcm_event {
	struct rdma_cm_event pub;
	struct rcm_event *next;
	struct rcm_id *id;  /* whose it is: a request is its listener's */
	bool local;	    /* made here; pub is all */
	struct vb_ipc_cm m; /* also keeps the private data */
	/* iWARP, where it may be longer; and whose the request is */
	struct rcm_private *more;
	uint32_t stream;
	/* rcm.lock: among those that no id stands for yet; at NULL: not */
	struct rcm_event *next_unseen, **unseen_at;
};

struct rcm_private {
	uint8_t bytes;
	uint8_t data[UINT8_MAX]; /* as many as an event can tell */
};

struct rcm_channel {
	struct rdma_event_channel pub;
	sem_t pushed; /* one for each event, and some to spare */
	/* rcm.lock */
	struct rcm_event *first, **last;
	unsigned inside; /* threads in rdma_get_cm_event() */
	bool closed;	 /* the last of them frees it */
};

enum rcm_state {
	RCM_NEW,
	RCM_BOUND,	/* has a port */
	RCM_RESOLVED,	/* and a peer */
	RCM_ROUTED,	/* and a way there */
	RCM_CONNECTING, /* or connected */
};

struct rcm_device {
	struct ibv_context *verbs;
	struct ibv_context *watch; /* removal.c; NULL: none */
	bool iwarp;
	atomic_uint removals; /* so far; set with rcm.lock */
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd; /* made when first wanted; rcm.lock */
	uint64_t guid;
	uint8_t max_resources, max_depth, mtu;
};

/* How far an id's connection is, as the broker and we have said. */
enum rcm_stage {
	RCM_QUIET,    /* none, or over */
	RCM_CALLED,   /* CONNECT was said */
	RCM_ASKED,    /* a request came */
	RCM_ANSWERED, /* ACCEPT was said */
	RCM_REPLIED,  /* a reply came */
	RCM_UP,
};

/* What the next broker must be told, should this one go. */
struct rcm_record {
	enum rcm_stage stage;
	bool listens, leaves;
	uint32_t backlog;
	struct vb_ipc_cm bound;	 /* BIND, with the port; kind 0: none */
	struct vb_ipc_cm said;	 /* CONNECT or ACCEPT */
	struct vb_ipc_cm ticket; /* the request or reply: its numbers */
};

struct rcm_id {
	struct rdma_cm_id pub;
	uint32_t number;
	unsigned life; /* rcm.life when it was made */
	enum rcm_state state;
	bool sync;
	bool in_broker; /* to be closed there */
	int tcp;	/* a bound socket that nothing has begun on; -1 */
	struct rcm_stream *stream; /* iWARP: what was; iw.h */
	struct rcm_device *device; /* set with rcm.lock, by its own thread */
	uint16_t port, space;	   /* AF_IB may say another than pub.ps */
	uint8_t flags, tos;
	uint64_t ticket;     /* for a child of fork to listen there as well */
	uint8_t ack_timeout; /* of RDMA_OPTION_ID_ACK_TIMEOUT, if set */
	bool timeout_set;
	uint8_t gid_index;
	struct ibv_ece ece; /* ours */
	uint8_t responder_resources, initiator_depth;
	uint32_t psn;	       /* the first that we expect */
	struct vb_ipc_cm way;  /* addresses, as the broker is told */
	struct vb_ipc_cm peer; /* what a REQ or REP said */
	bool made_qp_cqs, made_srq_cq;
	struct rcm_group *groups; /* joined; rcm.lock */
	/* rcm.lock */
	struct rcm_id *next;
	struct rcm_record record;
	bool removed; /* it was told that its device is gone */
	unsigned delivered, acked;
	pthread_cond_t acks;
	struct ibv_qp_init_attr *ep_attr; /* of a listener from create_ep */
	struct ibv_pd *ep_pd;
	/* What a REQ says before the program's own, by rdma_addrinfo. */
	uint8_t connect[VB_IPC_CM_PRIVATE];
	unsigned connect_bytes;
	bool resolving; /* rdma_resolve_addrinfo(), and not asked for yet */
	struct rdma_addrinfo *resolved;
};

struct rcm {
	pthread_mutex_t lock;
	/* lock */
	int fd;		   /* the session; -1: none */
	uint64_t sessions; /* so far, this one included */
	vb_time begun;	   /* when the last one did */
	bool lost;	   /* and its thread looks for another */
	unsigned life;	   /* a child of fork begins another */
	struct rcm_id *ids[1024];
	struct rcm_event *unseen; /* requests; the broker has ids for them */
	uint32_t known_qpn; /* of ours; a broker knew whose; 0: none yet */
	uint32_t next_number;
	bool asked, answered; /* BIND, LISTEN or HELLO is under way */
	struct vb_ipc_cm question, answer; /* question.tid: one more each */
	pthread_cond_t answers;
	struct rcm_device *devices;
	unsigned device_count;
	bool has_roce, has_iwarp; /* among them */
};
extern struct rcm rcm;

/* What rdma_cm's datagrams have (IBA leaves it open, and Linux settles it). */
#define RCM_QKEY RDMA_UDP_QKEY

static inline bool rcm_is_ud(const struct rcm_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

static inline bool rcm_is_iwarp(const struct rcm_id *id)
{
	return id->device && id->device->iwarp;
}

static inline struct rcm_id *rcm_id_of(struct rdma_cm_id *id)
{
	return VB_CONTAINER_OF(id, struct rcm_id, pub);
}

/* Every door of the ABI fails so. */
static inline int rcm_fail(int error)
{
	errno = error;
	return -1;
}

/* Newer than the header: numbers, and a union's member beside conn and ud. */
enum {
	RCM_EVENT_ADDRINFO_RESOLVED = 16,
	RCM_EVENT_ADDRINFO_ERROR,
	RCM_EVENT_USER
};

/* Options of ours, of level RDMA_OPTION_ID: a port's ticket, and to join
 * whoever has it. 8 bytes. */
enum { RCM_OPTION_TICKET = 0x7f01, RCM_OPTION_JOIN };

/* session.c: -errno each. */
int rcm_session_start(void);
int rcm_session_connect(void); /* a descriptor; with no lock */
/* One message. 0: handled, or DONE, if @done; -errno: the session is over. */
int rcm_session_hear(int fd, struct vb_ipc_cm *done);
/* Is @done the answer to this question, and not to an earlier one? */
bool rcm_is_answer(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *done);
int rcm_session_tell(const struct vb_ipc_cm *m);
int rcm_session_ask(const struct vb_ipc_cm *m, struct vb_ipc_cm *answer);
struct vb_ipc_cm rcm_message(const struct rcm_id *id, enum vb_ipc_cm_kind kind);

/* resume.c: with rcm.lock but for the last. */
void rcm_note_said(const struct vb_ipc_cm *m);
void rcm_note_done(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *m);
void rcm_note_heard(struct rcm_id *id, const struct vb_ipc_cm *m);
/* Find the next broker, and tell it all. The session, or -errno. */
int rcm_resume(void);

/* event.c */
void rcm_event_arrived(const struct vb_ipc_cm *m);
/* The same of an iWARP device's; takes @more, which may be NULL. */
void rcm_event_iwarp(const struct vb_ipc_cm *m, uint32_t stream,
		     struct rcm_private *more);
/* @status: 0 or -errno; the id's own news. -errno */
int rcm_event_local(struct rcm_id *id, enum rdma_cm_event_type what,
		    int status);
/* As that, with a group's way. */
int rcm_event_group(struct rcm_id *id, const struct rdma_ud_param *ud);
void rcm_event_forget(struct rcm_id *id);
void rcm_event_after_fork(void);
void rcm_event_move(struct rcm_id *id, struct rcm_channel *to);
/* With rcm.lock: its device is gone. It is told once. */
void rcm_event_removed(struct rcm_id *id);
/* Synchronous ids wait for what they asked; others return. */
int rcm_event_complete(struct rcm_id *id);

/* id.c */
/* -EINVAL: no such port space, or not for such queue pairs. */
int rcm_id_make(struct rdma_event_channel *channel, struct rdma_cm_id **pub,
		void *context, enum rdma_port_space ps, enum ibv_qp_type type);
struct rcm_id *rcm_id_create(struct rdma_event_channel *channel, void *context,
			     enum rdma_port_space ps, enum ibv_qp_type type);
struct rcm_id *rcm_id_find(uint32_t number); /* with rcm.lock */
void rcm_id_renumber(struct rcm_id *id, uint32_t number);

/* address.c */
socklen_t rcm_address_bytes(const struct sockaddr *a); /* 0: none of ours */
struct vb_gid rcm_gid_of(const struct sockaddr *a);
uint16_t rcm_port_of(const struct sockaddr *a);
void rcm_port_set(struct sockaddr *a, uint16_t port);
bool rcm_address_is_any(const struct sockaddr *a);
bool rcm_address_is_loopback(const struct sockaddr *a); /* 127/8, ::1 */
/* An IPv4 or IPv6 address. */
void rcm_address_of(struct sockaddr *a, const struct vb_gid *gid, uint16_t port,
		    uint32_t ifindex);
void rcm_address_of_ib(struct sockaddr *a, const struct vb_gid *gid,
		       uint16_t space, uint16_t port);
/* Where the ports of @a are: with those of the id's @own space, or as an AF_IB
 * address says. -EPROTONOSUPPORT */
int rcm_space_of(const struct sockaddr *a, enum rdma_port_space own);

/* device.c */
int rcm_devices_open(void); /* with rcm.lock; -errno */
/* The device that has @src's address, of any kind or of one; -ENODEV;
 * -EOPNOTSUPP: it has no such queue pairs. */
enum rcm_kind { RCM_ANY, RCM_ROCE, RCM_IWARP };
int rcm_device_choose(struct rcm_id *id, const struct vb_gid *src,
		      enum rcm_kind kind);
/* The first that is up, for a way from @src, a loopback address that no device
 * has, to this host itself: it leads from the device's address to the same. */
int rcm_device_choose_home(struct rcm_id *id, const struct vb_gid *src,
			   enum rcm_kind kind);
/* GID 0, whose entry names the device's interface. False: it has none. */
bool rcm_device_first_gid(const struct rcm_device *d, struct ibv_gid_entry *e);

/* resolve.c */
int rcm_bind(struct rcm_id *id, const struct sockaddr *a);
/* RDMA_OPTION_IB_PATH, which stands for rdma_resolve_route(). -errno */
int rcm_path_set(struct rcm_id *id, const void *value, size_t len);

/* iw_door.c: connections of iWARP devices, without a broker; -errno each. */
/* A socket at id->tcp, bound to @a and, in turn, *@port. */
int rcm_iw_bind(struct rcm_id *id, const struct sockaddr *a, uint16_t *port);
int rcm_iw_listen(struct rcm_id *id, int backlog);
int rcm_iw_connect(struct rcm_id *id, const struct rdma_conn_param *p);
int rcm_iw_accept(struct rcm_id *id, const struct rdma_conn_param *p);
int rcm_iw_reject(struct rcm_id *id, const void *data, uint8_t bytes);
int rcm_iw_disconnect(struct rcm_id *id);
/* Nothing is heard of it after the return. */
void rcm_iw_close(struct rcm_id *id);
/* @e, a request, is for @id from now on; -ENOENT: it is gone. */
int rcm_iw_adopt(const struct rcm_event *e, struct rcm_id *id);
/* Begin to listen for what becomes of devices. */
void rcm_iw_watch(void);
/* In the child: ports and connections are the parent's. */
void rcm_iw_after_fork(void);
/* Nobody wants it. */
void rcm_iw_refuse(const struct rcm_event *e);
/* The peer accepts: the queue pair gets the stream. */
int rcm_iw_establish(struct rcm_id *id);
/* It has it, or had. */
bool rcm_iw_is_handed_over(const struct rcm_id *id);

/* mcast.c */
/* The program takes the news: joined, or -errno. */
int rcm_group_joined(struct rcm_id *id, const struct ibv_ah_attr *ah);
void rcm_groups_forget(struct rcm_id *id);

/* removal.c */
void rcm_removals_watch(void); /* all devices; with rcm.lock */
int rcm_removals_fd(void);     /* readable: call the next; -1: never */
void rcm_removals_take(void);
void rcm_removals_after_fork(void);

/* qp.c */
/* The way to the peer, or, @dgid, to a group. */
void rcm_fill_ah(const struct rcm_id *id, struct ibv_ah_attr *ah,
		 const struct vb_gid *dgid);
int rcm_qp_init(struct rcm_id *id);
int rcm_qp_connect(struct rcm_id *id);
void rcm_qp_fail(struct rcm_id *id);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * librdmacm on top of the broker's connection manager and libibverbs. A process
 * has one session with the broker and one thread that reads it: the thread puts
 * the broker's messages as events on event channels, whose descriptors are
 * eventfds that are readable while events wait. Connections of iWARP devices
 * need no broker (iw.h).
 *
 * Unless a function says something else, it returns 0 or a negative errno, its
 * caller holds no lock, and it may sleep.
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
#include "core/why.h"
#include "wire/ipc_cm.h"

#define VB_EXPORT __attribute__((visibility("default")))

struct rcm_event {
	struct rdma_cm_event pub;
	struct rcm_event *next; /* the next event in the queue of its channel */
	struct rcm_id *id; /* the event's id; of a request, the listener's */
	bool local; /* this library made the event, and pub is complete */
	struct vb_ipc_cm m; /* the broker's message, with its private data */
	/* Of iWARP only: private data that may be longer than that of @m (NULL:
	 * none), and the number of the stream on which a request came (0: not
	 * iWARP). */
	struct rcm_private *more;
	uint32_t stream;
	/* Links of rcm.unseen; unseen_at is NULL while the event is not in that
	 * list. Protected by rcm.lock. */
	struct rcm_event *next_unseen, **unseen_at;
};

struct rcm_private {
	uint8_t bytes;
	/* most bytes of private data: the length in rdma_conn_param has 8
	 * bits */
	uint8_t data[UINT8_MAX];
};

struct rcm_channel {
	struct rdma_event_channel pub;
	sem_t pushed; /* posted at least once for each event in the queue */
	/* The fields below are protected by rcm.lock. */
	struct rcm_event *first, **last;
	unsigned inside; /* number of threads in rdma_get_cm_event() */
	/* the program has destroyed the channel; the last thread inside frees
	 * it */
	bool closed;
};

enum rcm_state {
	RCM_NEW,
	RCM_BOUND,	/* the id has a port */
	RCM_RESOLVING,	/* a thread asks for the peer's GID */
	RCM_RESOLVED,	/* the id has the peer's address and a device */
	RCM_ROUTING,	/* a subnet administrator is asked for the path */
	RCM_ROUTED,	/* the id has the path to the peer */
	RCM_CONNECTING, /* the id is connecting to its peer, or connected */
};

/* The versions of RoCE by which an id may connect, where its device has both.
 * IBV_GID_TYPE_IB, of InfiniBand, counts as RoCEv2. */
enum rcm_gid_rule {
	RCM_GID_V2,
	RCM_GID_PREFERS_V1, /* RoCEv1; RoCEv2 where a device lacks RoCEv1 */
	RCM_GID_V1,	    /* the peer has asked by RoCEv1 */
};

/* A port of a device. The ports of one device have one context, and one entry
 * each. */
struct rcm_device {
	struct ibv_context *verbs;
	uint8_t port; /* number of the port at the device */
	/* a second context, for removal.c; NULL: the device is not watched, or
	 * its first port's entry has the context */
	struct ibv_context *watch;
	bool iwarp;
	bool ib; /* a port of an InfiniBand fabric */
	/* Of a port of a fabric: the number by which the broker knows the port;
	 * 0: the broker does not use the port. Changed under rcm.lock, by
	 * rcm_places_tell(). */
	uint8_t place;
	/* number of removals so far; changed under rcm.lock */
	atomic_uint removals;
	struct ibv_pd *pd; /* one for all ports of a device */
	/* made when an id first needs XRC, before that NULL; protected by
	 * rcm.lock */
	struct ibv_xrcd *xrcd;
	uint64_t guid; /* GUID of the device, or of its node in the fabric */
	uint8_t max_resources, max_depth, mtu;
};

/* The progress of a connection, by the messages to and from the broker. */
enum rcm_stage {
	/* the id has no connection, or its connection has ended */
	RCM_IDLE,
	RCM_CALLED,   /* this side has sent a CONNECT */
	RCM_ASKED,    /* a connection request has arrived */
	RCM_ANSWERED, /* this side has sent an ACCEPT */
	RCM_REPLIED,  /* the peer's reply has arrived */
	RCM_UP,	      /* the connection is established */
};

/* Everything that resume.c reports to the next broker about an id if this
 * broker ends. */
struct rcm_record {
	enum rcm_stage stage;
	/* this side has sent the broker a LISTEN, or a DISCONNECT */
	bool listens, leaves;
	uint32_t backlog;
	/* the BIND that was sent, with the port that was given; kind 0: the id
	 * is not bound */
	struct vb_ipc_cm bound;
	/* the CONNECT or ACCEPT that this side has sent */
	struct vb_ipc_cm said;
	/* the request or reply that arrived, with the communication ids of both
	 * ends */
	struct vb_ipc_cm ticket;
	/* the PATH or SERVICE that this side has sent, while no answer has
	 * arrived; else kind 0 */
	struct vb_ipc_cm path;
};

struct rcm_id {
	struct rdma_cm_id pub;
	/* number of the id in messages to and from the broker */
	uint32_t number;
	unsigned forks; /* the value of rcm.forks when the id was made */
	/* Atomic: a thread of this library ends rdma_resolve_addr()
	 * (take_peer() in resolve.c), and the program may make calls meanwhile.
	 */
	_Atomic enum rcm_state state;
	bool sync; /* synchronous: the id's calls wait for their event */
	/* the broker knows the id and must be told to close it */
	bool in_broker;
	/* socket of an iWARP id that is bound and not used yet; -1: none */
	int tcp;
	/* the listener or connection of an iWARP id (iw.h) */
	struct rcm_stream *stream;
	/* changed under rcm.lock, and only by the thread that uses the id */
	struct rcm_device *device;
	/* the question for the peer's GID, which may have been answered already
	 * (ipoib.c); NULL: none was asked */
	struct rcm_asker *asker;

	/* an AF_IB address may name a port space other than pub.ps */
	uint16_t port, space;
	uint8_t flags, tos;
	/* the traffic class in the address that the program named as its
	 * own */
	uint8_t traffic_class;
	uint32_t qkey; /* Q_Key of the id's datagrams */
	/* secret number of the port: a child of fork() that shows it may listen
	 * at that port (RCM_OPTION_SECRET) */
	uint64_t secret;

	/* Local ACK Timeout code that the program set
	 * (RDMA_OPTION_ID_ACK_TIMEOUT) */
	uint8_t ack_timeout;
	bool timeout_set;
	uint8_t gid_index;
	/* by which GIDs the id may connect: an enum rcm_gid_rule */
	uint8_t gid_rule;
	bool v1;	    /* the GID that was chosen is one of RoCEv1 */
	struct ibv_ece ece; /* ECE options of the local end */
	uint8_t responder_resources, initiator_depth;
	uint32_t psn; /* the first PSN that this side receives */
	/* addresses and path of the id, in the format of messages to the
	 * broker */
	struct vb_ipc_cm path;
	struct vb_ipc_cm peer; /* the peer's REQ, REP or SIDR_REP */
	/* this library made the completion queues and must destroy them */
	bool made_qp_cqs, made_srq_cq;
	/* the multicast groups that were joined; protected by rcm.lock */
	struct rcm_group *groups;
	/* The fields below are protected by rcm.lock. */
	struct rcm_id *next;
	struct rcm_record record;
	bool removed; /* the event DEVICE_REMOVAL has been queued */
	/* when the id sent a connection request that the peer has not answered;
	 * 0: there is no such request, or the user was told that the answer is
	 * late */
	vb_time asked_at;
	/* numbers of events that were delivered, and acknowledged */
	unsigned delivered, acked;
	pthread_cond_t acks;
	/* Of a listener: the attributes that the program gave to
	 * rdma_create_ep() for the queue pairs of its connections. */
	struct ibv_qp_init_attr *ep_attr;
	struct ibv_pd *ep_pd;
	/* Private data of a REQ that rdma_addrinfo's ai_connect asks for, which
	 * come before the program's own. */
	uint8_t connect[VB_IPC_CM_PRIVATE];
	unsigned connect_bytes;
	/* rdma_resolve_addrinfo() has run, and the program has not queried the
	 * result yet */
	bool resolving;
	struct rdma_addrinfo *resolved;
};

struct rcm {
	pthread_mutex_t lock;
	/* The fields below are protected by lock. */
	int fd;		   /* the socket of the session; -1: there is none */
	uint64_t sessions; /* number of sessions so far, this one included */
	vb_time begun;	   /* the time when the last session began */
	/* the session has ended, and its thread looks for the next broker */
	bool lost;
	unsigned forks; /* incremented in each child of fork() */
	struct rcm_id *ids[1024];
	/* list of connection requests that have no id yet */
	struct rcm_event *unseen;
	/* number of a queue pair that a broker has confirmed as this process's;
	 * 0: none yet */
	uint32_t known_qpn;
	uint32_t next_number;
	/* One BIND, LISTEN or HELLO may wait for its answer (@asked); the
	 * answer has the tid of the question, and each question has a new
	 * one. */
	bool asked, answered;
	struct vb_ipc_cm question, answer;
	pthread_cond_t answers;
	struct rcm_device *devices;
	unsigned device_count;
	/* The list of devices has RoCE devices; iWARP devices; adapters of
	 * InfiniBand fabrics. */
	bool has_roce, has_iwarp, has_ib;
	/* what new ids begin with: an enum rcm_gid_rule, which the variable
	 * VERBENA_CM_GID_TYPE sets */
	uint8_t gid_rule;
};
extern struct rcm rcm;

/* The Q_Key of rdma_cm's datagrams. IBA leaves the value open; this is the one
 * of Linux's rdma_cm. */
#define RCM_QKEY RDMA_UDP_QKEY

static inline bool rcm_is_ud(const struct rcm_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

static inline bool rcm_is_iwarp(const struct rcm_id *id)
{
	return id->device && id->device->iwarp;
}

static inline bool rcm_is_ib(const struct rcm_id *id)
{
	return id->device && id->device->ib;
}

static inline struct rcm_id *rcm_id_of(struct rdma_cm_id *id)
{
	return VB_CONTAINER_OF(id, struct rcm_id, pub);
}

/* Sets errno to @error, which is positive, and returns -1. For a public
 * function that fails when the user or the program knows the reason already:
 * another public function, of this library or of verbs, or an event has told
 * it. */
static inline int rcm_pass(int error)
{
	errno = error;
	return -1;
}

/* Does what rcm_pass() does, and makes sure that the user learns of the refusal
 * (vb_why_refused()). The macro rcm_fail() passes the name of the function that
 * uses it; a helper calls rcm_fail_of() with the public function's name. */
static inline int rcm_fail_of(int error, const char *call)
{
	vb_why_refused(call, error);
	return rcm_pass(error);
}
#define rcm_fail(error) rcm_fail_of((error), __func__)

/* Event types that an older <rdma/rdma_cma.h> does not define. */
enum {
	RCM_EVENT_ADDRINFO_RESOLVED = 16,
	RCM_EVENT_ADDRINFO_ERROR,
	RCM_EVENT_USER
};

/* Verbena's own options of level RDMA_OPTION_ID; the value is a uint64_t.
 * SECRET, before rdma_bind_addr(), gives the port a secret number. JOIN, in a
 * child of fork(), permits to bind the port that has this number. */
enum { RCM_OPTION_SECRET = 0x7f01, RCM_OPTION_JOIN };

/* Functions of session.c. */

/* Opens the devices and the session, unless this process has already done
 * so. */
int rcm_session_start(void);
/* Returns the descriptor of a new socket that is connected to the broker; the
 * caller closes it. */
int rcm_session_connect(void);
/* Reads one message from @fd and handles it. Copies an answer (DONE) to *@done
 * and does no more with it; for other messages done->kind does not change. An
 * error ends the session. */
int rcm_session_hear(int fd, struct vb_ipc_cm *done);
/* True if @done answers the question @asked and not an earlier one. */
bool rcm_is_answer(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *done);
/* Sends @m. If the broker has ended, waits up to 10 s for the next one. */
int rcm_session_tell(const struct vb_ipc_cm *m);
/* Sends @m as rcm_session_tell() does, and waits up to 10 s for the answer. If
 * the status of the answer is not 0, returns it as a negative errno. */
int rcm_session_ask(const struct vb_ipc_cm *m, struct vb_ipc_cm *answer);
/* Returns a message of @kind that names @id, with all other fields 0. */
struct vb_ipc_cm rcm_message(const struct rcm_id *id, enum vb_ipc_cm_kind kind);

/* Functions of resume.c. The caller of the first three holds rcm.lock. They
 * update the record of the id that a message names: rcm_note_said() after the
 * message was sent, rcm_note_done() after @m answered the question @asked,
 * rcm_note_heard() after the message arrived. */
void rcm_note_said(const struct vb_ipc_cm *m);
void rcm_note_done(const struct vb_ipc_cm *asked, const struct vb_ipc_cm *m);
void rcm_note_heard(struct rcm_id *id, const struct vb_ipc_cm *m);
/* Waits for the next broker and replays all records to it. Returns the socket
 * of the new session, which the caller owns. */
int rcm_resume(void);

/* Functions of event.c. Those that queue an event copy their arguments. They
 * drop an event that arrived if the id has no channel. */

/* Queues the broker's message @m as an event. */
void rcm_event_arrived(const struct vb_ipc_cm *m);
/* Queues the message @m of the iWARP stream @stream as an event. The event then
 * owns @more, the message's private data, which may be NULL. */
void rcm_event_iwarp(const struct vb_ipc_cm *m, uint32_t stream,
		     struct rcm_private *more);
/* Queues an event that this library made. @status: 0 or a negative errno, for
 * the program. Returns -EINVAL if the id has no channel; -ENOMEM. */
int rcm_event_local(struct rcm_id *id, enum rdma_cm_event_type what,
		    int status);
/* Queues MULTICAST_JOIN with the address of the group. Errors as of
 * rcm_event_local(). */
int rcm_event_group(struct rcm_id *id, const struct rdma_ud_param *ud);
/* Queues DEVICE_REMOVAL, once for each id. The caller holds rcm.lock. */
void rcm_event_removed(struct rcm_id *id);
/* If the id is synchronous, waits for the event of the operation that the
 * caller has started; otherwise returns at once. Returns 0, or -1 and errno. */
int rcm_event_complete(struct rcm_id *id);

/* Functions of channel.c. */

/* Drops the unread events of @id and waits until the program has acknowledged
 * the others. Refuses the peers whose requests are dropped. */
void rcm_event_forget(struct rcm_id *id);
/* Waits until the program has acknowledged all events of @id that it has read,
 * then moves @id and its unread events to the channel @to. */
void rcm_event_move(struct rcm_id *id, struct rcm_channel *to);
/* Runs in the child of fork(): empties rcm.unseen. */
void rcm_event_after_fork(void);

/* Functions of id.c. */

/* Makes an id for the program, after starting the session. @channel NULL: the
 * id is synchronous and gets a channel of its own. -EINVAL: the port space is
 * unknown or does not have queue pairs of that type. */
int rcm_id_make(struct rdma_event_channel *channel, struct rdma_cm_id **pub,
		void *context, enum rdma_port_space ps, enum ibv_qp_type type);
/* Makes an id like rcm_id_make(), but without checks and without the session.
 * NULL: failed, with errno. */
struct rcm_id *rcm_id_create(struct rdma_event_channel *channel, void *context,
			     enum rdma_port_space ps, enum ibv_qp_type type);
/* Returns the id that has the number @number, or NULL. The caller holds
 * rcm.lock. */
struct rcm_id *rcm_id_find(uint32_t number);
void rcm_id_renumber(struct rcm_id *id, uint32_t number);

/* Functions of address.c. Addresses are AF_INET, AF_INET6 or AF_IB. Ports are
 * in the byte order of the host. An IPv4 address as a GID is ::ffff:a.b.c.d. */

/* Returns the length of the address in bytes; 0: it is of another family. */
socklen_t rcm_address_bytes(const struct sockaddr *a);
struct vb_gid rcm_gid_of(const struct sockaddr *a);
uint16_t rcm_port_of(const struct sockaddr *a);
void rcm_port_set(struct sockaddr *a, uint16_t port);
/* True if @a is the wildcard address. */
bool rcm_address_is_any(const struct sockaddr *a);
/* Returns the traffic class in the address; 0: it has none. */
uint8_t rcm_address_class(const struct sockaddr *a);
/* True if @a is in 127.0.0.0/8 or is ::1. */
bool rcm_address_is_loopback(const struct sockaddr *a);
/* Writes the IPv4 or IPv6 address @gid to @a, which has room for a
 * sockaddr_in6. @ifindex becomes the scope of a link-local address. */
void rcm_address_of(struct sockaddr *a, const struct vb_gid *gid, uint16_t port,
		    uint32_t ifindex);
/* Writes an AF_IB address to @a, which has room for a sockaddr_ib. */
void rcm_address_of_ib(struct sockaddr *a, const struct vb_gid *gid,
		       uint16_t space, uint16_t port);
/* Returns the port space of @a. This is @own, the space of the id, unless @a is
 * an AF_IB address and names another space. -EPROTONOSUPPORT: ids of @own may
 * not use that space. */
int rcm_space_of(const struct sockaddr *a, enum rdma_port_space own);

/* Functions of device.c. */

/* Opens all devices, once for each process; they stay open until it ends. The
 * caller holds rcm.lock. -ENODEV: there is none. */
int rcm_devices_open(void);
/* Sets the device of @id to the first one of kind @kind that has the address
 * @src. -ENODEV: none has it; -EOPNOTSUPP: the device does not have queue pairs
 * of the id's type. */
enum rcm_kind {
	RCM_ANY,
	RCM_ROCE,
	RCM_IWARP,
	RCM_IB,
	/* devices that the InfiniBand connection manager serves: RoCE and
	 * InfiniBand */
	RCM_CM
};
int rcm_device_choose(struct rcm_id *id, const struct vb_gid *src,
		      enum rcm_kind kind);
/* Sets the device of @id to the adapter that the broker knows as @place, whose
 * port has the GID @src. Errors as of rcm_device_choose(). */
int rcm_device_choose_place(struct rcm_id *id, const struct vb_gid *src,
			    uint8_t place);
/* Finds the port of the id's adapter that has the GID @gid, and its entry *@e;
 * @place: only the port that the broker knows by this number, 0: any. NULL:
 * there is none that the broker knows. */
struct rcm_device *rcm_device_sibling(const struct rcm_id *id,
				      const struct vb_gid *gid, uint8_t place,
				      struct ibv_gid_entry *e);
/* Finds the source GID for a path to @dst: @dst itself if an adapter of this
 * process has it, otherwise a GID with the same subnet prefix, both only at an
 * active port of a fabric. False: there is none. */
bool rcm_device_source(const struct vb_gid *dst, struct vb_gid *src);
/* True if an adapter of InfiniBand that the broker knows has @gid. */
bool rcm_device_is_ib(const struct vb_gid *gid);
/* Sets the device of @id to the first that is up, for a path from the loopback
 * address @src, which no device has, to this host itself. The path leads from
 * an address of that device to this very address. Errors as of
 * rcm_device_choose(). */
int rcm_device_choose_home(struct rcm_id *id, const struct vb_gid *src,
			   enum rcm_kind kind);
/* Reads GID 0, whose entry names the device's interface; an interface that is
 * created again gets another index. False: there is no GID. */
bool rcm_device_first_gid(const struct rcm_device *d, struct ibv_gid_entry *e);

/* Functions of places.c. */

/* Gives the broker at the other end of @fd, a session that no other thread uses
 * yet, all adapters of fabrics that this process has. An adapter that the
 * broker cannot use has d->place 0 then, and the log says why. -errno: the
 * session failed. */
int rcm_places_tell(int fd);
/* Call this after another broker may have numbered the ports anew. @was: the
 * old numbers, indexed like rcm.devices. Replaces the old numbers in ids and in
 * unread requests. The caller holds rcm.lock. */
void rcm_places_follow(const uint8_t *was);

/* Functions of ipoib.c: IP addresses on InfiniBand. */

/* Sets the device of @id to the adapter whose IPoIB interface has the address
 * @ip, the P_Key of the path to the interface's, and in the port space IPoIB
 * the Q_Key to the interface's. Waits up to 1 s for the interface's process.
 * -ENODEV: no interface of this process's adapters has @ip; -EAGAIN: the
 * interface's process serves too many programs; -ETIMEDOUT: that process does
 * not answer. */
int rcm_ipoib_choose(struct rcm_id *id, const struct vb_gid *ip);
/* Takes the GID of the neighbour for which rcm_ipoib_ask() was called. @error:
 * 0 or -errno. */
typedef void rcm_ipoib_take(struct rcm_id *id, int error,
			    const struct vb_gid *gid);
/* Finds the GID of the neighbour @ip of the IPoIB interface that has the
 * address
 * @from. @take is called with it, or with an error: -EHOSTUNREACH: nobody
 * answers for @ip; -ETIMEDOUT: nobody has answered within @timeout_ms. It is
 * called before this function returns, or by another thread. -ENODEV: no
 * interface has @from; -EAGAIN: no thread can be started. Then @take is not
 * called. */
int rcm_ipoib_ask(struct rcm_id *id, const struct vb_gid *from,
		  const struct vb_gid *ip, int timeout_ms,
		  rcm_ipoib_take *take);
/* Ends the question of @id, if there is one. Afterwards @take is not called any
 * more. The caller does not hold rcm.lock. */
void rcm_ipoib_forget(struct rcm_id *id);

/* Functions of route.c: paths of InfiniBand. */

/* Asks the subnet administrator for the path of @id; an event follows. */
int rcm_route_ask(struct rcm_id *id, int timeout_ms);
/* Handles the administrator's answer @m: completes the path of @id. False: @id
 * has not asked for a path. */
bool rcm_route_take(struct rcm_id *id, const struct vb_ipc_cm *m);
/* Makes the path record of @id. Without memory the id gets none. */
void rcm_route_describe(struct rcm_id *id);
/* Takes the path from a record of the program, and an alternate path from
 * @alternate if that is not NULL. -EINVAL: one of the two is no path of the
 * adapter's fabric; then nothing has changed. */
int rcm_route_set(struct rcm_id *id, const struct ibv_path_record *path,
		  const struct ibv_path_record *alternate);

/* Functions of alternate.c: alternate paths of InfiniBand. They are in
 * id->path.alternate. */

/* Takes the alternate path from a record of the program. -EINVAL: no port of
 * the id's adapter has the path's end, or the primary path's P_Key or MTU is
 * not possible there. */
int rcm_alternate_set(struct rcm_id *id, const struct ibv_path_record *path);
/* Returns the port of the alternate path; 0: the id has no such path, or its
 * adapter cannot use it. */
uint8_t rcm_alternate_port(const struct rcm_id *id);
/* Returns the path of @id with the alternate one in place of the primary one.
 */
struct vb_ipc_cm rcm_alternate_path(const struct rcm_id *id);
/* Adds the alternate path to the attributes of RTR, and the state Rearm to
 * those of RTS, if the id has such a path. */
void rcm_alternate_fill(const struct rcm_id *id, struct ibv_qp_attr *a,
			int *mask);

/* Flags of rdma_getaddrinfo() that an older <rdma/rdma_cma.h> does not define:
 * ask the subnet administrator for a service, or DNS for an address. */
#define RCM_RAI_SA  0x10
#define RCM_RAI_DNS 0x20

/* Functions of service.c: services that ports of InfiniBand have. */

/* Asks the subnet administrator for the service, an ID or a name; an event
 * follows. -EINVAL: @id is not bound to a port; -EOPNOTSUPP: the port is not
 * one of InfiniBand. */
int rcm_service_ask(const struct rcm_id *id, const char *service);
/* Handles the administrator's answer @m: keeps the result, and fills in the
 * event @pub. */
void rcm_service_take(struct rcm_id *id, const struct vb_ipc_cm *m,
		      struct rdma_cm_event *pub);
/* Asks the administrators of this process's adapters, one after the other,
 * until one has the service. *@res is the result. -ENOENT: there is no
 * adapter. */
int rcm_service_find(const char *service, struct rdma_addrinfo **res);

/* A function of acm.c: asks ibacm, if it runs here and this process has an
 * adapter of InfiniBand, for the path to the first result of *@list, and puts a
 * result with GIDs before it. Waits for up to 3 s. */
void rcm_acm_resolve(struct rdma_addrinfo **list,
		     const struct rdma_addrinfo *hints);

/* Functions of resolve.c. */

/* Binds @id to @a and to a port, a free one if @a names none. -EADDRINUSE;
 * -ENODEV and -EOPNOTSUPP as of rcm_device_choose(). */
int rcm_bind(struct rcm_id *id, const struct sockaddr *a);
/* Sets the path of @id (RDMA_OPTION_IB_PATH), in place of rdma_resolve_route().
 * @value: @len bytes of struct ibv_path_data. */
int rcm_path_set(struct rcm_id *id, const void *value, size_t len);

/* Functions of iw_door.c: connections of iWARP devices, without a broker. */

/* Makes id->tcp a socket that is bound to the address of @a and to *@port; 0:
 * to a free port, which is stored there. */
int rcm_iw_bind(struct rcm_id *id, const struct sockaddr *a, uint16_t *port);
int rcm_iw_listen(struct rcm_id *id, int backlog);
int rcm_iw_connect(struct rcm_id *id, const struct rdma_conn_param *p);
int rcm_iw_accept(struct rcm_id *id, const struct rdma_conn_param *p);
int rcm_iw_reject(struct rcm_id *id, const void *data, uint8_t bytes);
int rcm_iw_disconnect(struct rcm_id *id);
/* Ends the listener or connection of @id. No event of @id is queued later. */
void rcm_iw_close(struct rcm_id *id);
/* Gives the stream of the request @e to @id. -ENOENT: the stream has ended. */
int rcm_iw_adopt(const struct rcm_event *e, struct rcm_id *id);
/* Makes the thread of iw.c watch for the removal of devices, because this
 * process has no session whose thread does. */
void rcm_iw_watch(void);
/* Runs in the child of fork(): drops the parent's ports and connections. */
void rcm_iw_after_fork(void);
/* Refuses the request @e, which got no id. */
void rcm_iw_refuse(const struct rcm_event *e);
/* After the peer accepted: gives the stream to the queue pair of @id. */
int rcm_iw_establish(struct rcm_id *id);
/* True from the moment when the queue pair of @id has got the stream. */
bool rcm_iw_is_handed_over(const struct rcm_id *id);

/* Functions of mcast.c. */

/* Attaches the queue pair of @id to the group that it has joined; called when
 * the program reads the event. -ENOENT: the program has left the group. */
int rcm_group_joined(struct rcm_id *id, const struct ibv_ah_attr *ah);
/* The subnet administrator has answered @m to a GROUP_JOIN of @id: fills in the
 * event @pub. False: the program gets none. */
bool rcm_group_take(struct rcm_id *id, const struct vb_ipc_cm *m,
		    struct rdma_cm_event *pub);
/* Calls @add with the GROUP_JOIN of each group of @id that the subnet
 * administrator knows. The caller holds rcm.lock. */
void rcm_groups_each(const struct rcm_id *id,
		     void (*add)(void *arg, const struct vb_ipc_cm *m),
		     void *arg);
/* The broker now knows the id's adapter by the number @place. The caller holds
 * rcm.lock. */
void rcm_groups_move(struct rcm_id *id, uint8_t place);
/* Returns the GID of the group that the address @a names on InfiniBand. An IPv6
 * address that is itself the GID of an InfiniBand group is that group. */
struct vb_gid rcm_mgid_of(const struct rcm_id *id, const struct sockaddr *a);
/* Leaves all groups of @id. */
void rcm_groups_forget(struct rcm_id *id);

/* Functions of removal.c. */

/* Starts to watch all devices. The caller holds rcm.lock. */
void rcm_removals_watch(void);
/* Returns a descriptor that is readable when rcm_removals_take() has work to
 * do; -1: no device is watched. */
int rcm_removals_fd(void);
void rcm_removals_take(void);
void rcm_removals_after_fork(void);

/* Functions of qp.c. */

/* Returns the index of the path's P_Key at a port of the id's adapter, or
 * -1. */
int rcm_pkey_index(const struct rcm_id *id, uint8_t port);
/* Fills in @ah with the path @w by @port, whose GID is at @gid_index. */
void rcm_fill_way(const struct vb_ipc_cm *w, uint8_t port, uint8_t gid_index,
		  struct ibv_ah_attr *ah);
/* Fills in @ah with the path of @id, but to @dgid: the peer or a group. */
void rcm_fill_ah(const struct rcm_id *id, struct ibv_ah_attr *ah,
		 const struct vb_gid *dgid);
/* Moves a new queue pair to INIT, and a datagram queue pair further to RTS. */
int rcm_qp_init(struct rcm_id *id);
/* Moves the queue pair to RTS with the parameters of the peer's message. Does
 * nothing for datagrams. */
int rcm_qp_connect(struct rcm_id *id);
/* Moves the queue pair, if there is one, to the error state. */
void rcm_qp_fail(struct rcm_id *id);

/* Functions of why.c, which tell on standard error what went wrong. */

/* Make the timer of late answers. The caller holds rcm.lock. */
void rcm_why_begin(void);
/* Returns a descriptor that is readable when rcm_why_take() has work to do; -1:
 * there is none. */
int rcm_why_fd(void);
void rcm_why_take(void);
void rcm_why_after_fork(void);
/* Call this when @id sends a connection request: a timer then reports to the
 * user if the peer answers late. Takes rcm.lock. */
void rcm_why_asks(struct rcm_id *id);
/* Tells the user that the peer has rejected the connection of @id, unless the
 * peer's program did so. @status: that of the event. */
void rcm_why_rejected(const struct rcm_id *id, int status);
void rcm_why_unreachable(const struct rcm_id *id, int status);
/* Tells the user that the address @to was not resolved; @rc is -errno. */
void rcm_why_address(const struct sockaddr *to, int rc);
/* Tells the user that rdma_bind_addr() to the address @to fails with @rc. If
 * the reason is that no device has the address, the user is told only when the
 * process ends, and only if the process has tried no other address that no
 * device has, and no id got a device. */
void rcm_why_bind(const struct sockaddr *to, int rc);
/* Call this when an id has got a device: see rcm_why_bind(). */
void rcm_why_served(void);
/* Tells the user that the call @call on @id is refused with @error, a positive
 * errno. Returns what rcm_fail() does. */
int rcm_why_call(const struct rcm_id *id, const char *call, int error);
/* Does what rcm_why_call() does, with EINVAL; @why, a clause, is the reason.
 * @id may be NULL. */
int rcm_why_refuse(const struct rcm_id *id, const char *call, const char *why);

#endif

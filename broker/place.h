/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places: ports of InfiniBand adapters. The process of a fabric serves the
 * programs of this host. A program gives the broker a connection to the fabric,
 * on which the program has registered two agents (wire/umad_ipc.h), and the
 * broker sends and receives the MADs of queue pair 1 there. A fabric serves its
 * own user and root, so a program that has a connection to it may use the
 * place. What the fabric says is checked: a program can be the fabric itself.
 */
#ifndef BROKER_PLACE_H
#define BROKER_PLACE_H

#include <sys/types.h>

#include "mgmt/mad_out.h"
#include "wire/ipc_cm.h"

/* What has changed at a place; bits. */
enum vb_place_change {
	PLACE_CHANGED_ADDRESS = 1, /* LID, GID or P_Key of the port */
	PLACE_CHANGED_MANAGER = 2, /* the subnet manager's LID */
	PLACE_CHANGED_STATE = 4,   /* the port has become active, or not */
	/* clients must register again (IBA 14.2.5.6) */
	PLACE_REREGISTER = 8,
	PLACE_ENDED = 16, /* the fabric's process has ended */
};

struct vb_place_ops {
	/* A MAD of a connection manager has come; @back leads to its sender.
	 * The bytes are valid during the call. */
	void (*cm)(void *arg, const struct vb_mad_path *back,
		   const uint8_t *bytes, size_t len);
	/* @bytes: an answer of the subnet administrator of @place. @silent:
	 * no answer came; @bytes has the MAD header of the request. */
	void (*sa)(void *arg, unsigned place, bool silent, const uint8_t *bytes,
		   size_t len);
	/* @what: bits of enum vb_place_change. */
	void (*changed)(void *arg, unsigned place, unsigned what);
	void *arg;
};

struct vb_places;

/* Create the table, without a place. 0 or -errno. */
VB_MUST_CHECK int vb_places_create(const struct vb_place_ops *ops,
				   struct vb_places **places);
void vb_places_destroy(struct vb_places *all);
/* Returns a descriptor that is readable when vb_places_poll() has work to do;
 * @all closes it. */
int vb_places_fd(const struct vb_places *all);
/* Handles some of the messages of the fabrics. */
void vb_places_poll(struct vb_places *all);

/* The port of an adapter, as a program describes it. */
struct vb_place_claim {
	uint64_t node_guid;
	uint8_t port;
	/* the numbers of the program's agents on the connection: for
	 * connections, and for the subnet administrator */
	uint32_t cm_agent, sa_agent;
	/* the place's number that the program wants; 0: any */
	uint8_t wanted;
};

/* Returns the number of the place that @claim describes, of the fabric at the
 * other end of the connection @fd. @uid: the user of the program that gave @fd
 * to the broker. -ENOENT: there
 * is no such place yet; -EPERM: the fabric is another user's; -EPROTO: @fd is
 * no connection. */
VB_MUST_CHECK int vb_place_find(const struct vb_places *all, int fd, uid_t uid,
				const struct vb_place_claim *claim);
/* Makes the place, and returns its number. The table then owns @fd, and closes
 * it when nobody uses the place. The first message that can be read from @fd
 * has the state of the port (UMAD_WATCH, wire/umad_ipc.h). -EPROTO: it does
 * not; -ENOSPC: the table is full; -EDQUOT: the user has given too many places;
 * else as vb_place_find(). */
VB_MUST_CHECK int vb_place_add(struct vb_places *all, int fd, uid_t uid,
			       const struct vb_place_claim *claim);
/* A program begins to use the place, or stops. After the last one has stopped,
 * the place ends at the next vb_place_reap(). */
void vb_place_hold(struct vb_places *all, unsigned place);
void vb_place_drop(struct vb_places *all, unsigned place);
/* Ends the places that nobody uses. */
void vb_place_reap(struct vb_places *all);
/* Returns whether vb_place_reap() would end a place. */
bool vb_place_is_idle(const struct vb_places *all);

/* Returns whether the port of @place has @gid; false also if the place has
 * ended. */
bool vb_place_has_gid(const struct vb_places *all, unsigned place,
		      const struct vb_gid *gid);
/* Returns GID 0 of the port; zero: it is not known. */
struct vb_gid vb_place_gid(const struct vb_places *all, unsigned place);
/* Returns whether @lid is one of the port's; *@path_bits are its low bits. */
bool vb_place_has_lid(const struct vb_places *all, unsigned place, uint16_t lid,
		      uint8_t *path_bits);
/* Returns the LID of the port; 0: none is known. */
uint16_t vb_place_lid(const struct vb_places *all, unsigned place);
/* Returns the index of the port's P_Key that has the number of @pkey, a full
 * membership before a limited one; or -ENOENT. */
int vb_place_pkey_index(const struct vb_places *all, unsigned place,
			uint16_t pkey);

/* Sends @mad to queue pair 1 of the peer at the end of @path. A MAD that cannot
 * be sent is lost, as on a wire. */
void vb_place_send(struct vb_places *all, const struct vb_mad_path *path,
		   const uint8_t mad[VB_MAD_BYTES]);
/* Sends the request @mad to the subnet administrator, @retries times more if no
 * answer comes within @timeout_ms. 0; -ENODEV: the place has ended; -EAGAIN:
 * the port has no subnet manager, or the fabric does not read. */
VB_MUST_CHECK int vb_place_ask(struct vb_places *all, unsigned place,
			       const uint8_t mad[VB_MAD_BYTES],
			       uint32_t timeout_ms, uint32_t retries);

#endif

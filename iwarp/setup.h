/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a TCP connection becomes iWARP: MPA request and reply (RFC 5044 s7.1),
 * with RFC 6581's negotiation of READ depths and of the first message. A state
 * machine without I/O and without timeouts; it uses only wire and base.
 *
 * 	initiator			responder
 * 	vb_mpa_connect()		vb_mpa_listen()
 * 	send out/out_bytes
 * 					want(), got(): MPA_ASKED
 * 					vb_mpa_accept(), or vb_mpa_reject()
 * 					send out/out_bytes; MPA_OPEN,
 * 					or MPA_SHUT
 * 	want(), got(): MPA_OPEN,
 * 	or MPA_REFUSED
 *
 * In MPA_OPEN the caller passes @terms and the socket to vb_iw_start().
 */
#ifndef IWARP_SETUP_H
#define IWARP_SETUP_H

#include "wire/iwarp.h"

/* The message that the initiator sends first; after it the responder may send
 * (RTR, RFC 6581 s5). */
enum vb_mpa_rtr {
	RTR_NONE = 0,
	RTR_SEND = 1 << 0, /* of 0 bytes, like the next two */
	RTR_WRITE = 1 << 1,
	RTR_READ = 1 << 2,
	RTR_ANY = RTR_SEND | RTR_WRITE | RTR_READ,
};

/* What one side asks for or offers in its frame. */
struct vb_mpa_offer {
	uint8_t revision; /* 1, or 2: enhanced */
	bool crc;	  /* insist on CRCs; false: the peer decides */
	bool markers;	  /* the peer shall put markers into what it sends */
	/* The peer is on this host and may be a Verbena. */
	bool near;
	uint8_t rtr; /* bits of enum vb_mpa_rtr; 0: not peer-to-peer */
	/* READs and atomics in progress at most: those of the peer (ird) and
	 * those of this side (ord). */
	uint16_t ird, ord;
};
/* The default: revision 2, CRC, no markers, peer-to-peer by WRITE or READ. */
extern const struct vb_mpa_offer vb_mpa_usual;

/* What both sides agreed on. */
struct vb_mpa_terms {
	bool initiator;
	bool crc;
	bool tx_markers, rx_markers;
	/* Both sides said near: they exchange cards first. */
	bool near;
	uint8_t rtr; /* the one enum vb_mpa_rtr the initiator begins with */
	uint16_t ird, ord;
	/* MSS of the TCP connection, set by the caller; 0: unknown. */
	uint16_t mss;
};

enum vb_mpa_state {
	MPA_ASKING,  /* initiator: has a request to send, or has sent it */
	MPA_WAITING, /* responder: no request yet */
	MPA_ASKED,   /* responder: call vb_mpa_accept() or _reject() */
	MPA_OPEN,    /* agreed; if out is not empty, send it first */
	MPA_REFUSED, /* initiator: the peer rejected, with private data */
	MPA_SHUT,    /* responder: rejected; close once out is sent */
	MPA_BROKEN,  /* the peer violates MPA, or this side's terms: close */
};

struct vb_mpa_setup {
	enum vb_mpa_state state;
	struct vb_mpa_offer offer; /* this side's own */
	struct vb_mpa_terms terms;
	/* In MPA_BROKEN: the error code of a Terminate of layer LLP (RFC 6581
	 * s9.2). If out_bytes is not 0, out holds it as an FPDU to be sent. */
	uint8_t code;
	/* The peer's frame; valid in MPA_ASKED, MPA_OPEN and MPA_REFUSED. */
	struct vb_mpa_frame peer;
	const uint8_t *private_data; /* the peer's; points into in[] */
	uint16_t private_bytes;
	/* The peer's IRD and ORD, at most the ORD and IRD that this side
	 * offered. */
	uint16_t peer_ird, peer_ord;
	/* the caller sends all of it at once */
	uint8_t out[VB_MPA_FRAME_MAX];
	uint16_t out_bytes;
	uint8_t in[VB_MPA_FRAME_MAX];
	uint16_t in_bytes;
};

/* The longest private data of the program, bytes, in this revision. */
unsigned vb_mpa_private_max(unsigned revision);

/* Begin as initiator, or, with vb_mpa_listen(), as responder. 0; -EINVAL: too
 * much private data, or an unknown revision. Copies @private_data. */
VB_MUST_CHECK int vb_mpa_connect(struct vb_mpa_setup *m,
				 const struct vb_mpa_offer *offer,
				 const void *private_data, unsigned bytes);
void vb_mpa_listen(struct vb_mpa_setup *m, const struct vb_mpa_offer *offer);

/* How many bytes the caller may read from the socket now; more might belong to
 * the stream behind the frame. 0: none. */
unsigned vb_mpa_want(const struct vb_mpa_setup *m);
/* @count bytes arrived, at most what vb_mpa_want() said. Returns the new
 * state. */
enum vb_mpa_state vb_mpa_got(struct vb_mpa_setup *m, const void *bytes,
			     unsigned count);

/* Accept the request, only in MPA_ASKED. @ird and @ord replace offer.ird and
 * offer.ord. 0; -EINVAL: another state, or too much private data. */
VB_MUST_CHECK int vb_mpa_accept(struct vb_mpa_setup *m, uint16_t ird,
				uint16_t ord, const void *private_data,
				unsigned bytes);
/* Reject the request, only in MPA_ASKED. 0 or -EINVAL as vb_mpa_accept(). */
VB_MUST_CHECK int vb_mpa_reject(struct vb_mpa_setup *m,
				const void *private_data, unsigned bytes);

#endif

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

/* The message that the initiator sends first, so that the responder may send
 * (RTR, RFC 6581 s5). */
enum vb_mpa_rtr {
	RTR_NONE = 0,
	RTR_SEND = 1 << 0, /* of 0 bytes, as the others */
	RTR_WRITE = 1 << 1,
	RTR_READ = 1 << 2,
	RTR_ANY = RTR_SEND | RTR_WRITE | RTR_READ,
};

/* What one side requests or grants. */
struct vb_mpa_offer {
	uint8_t revision; /* 1, or 2: enhanced */
	bool crc;	  /* insist on CRCs; false: the peer decides */
	bool markers;	  /* request markers in what we receive */
	/* The peer is on this host and may be a Verbena. */
	bool near;
	uint8_t rtr; /* bits of enum vb_mpa_rtr; 0: not peer-to-peer */
	/* READs and atomics in progress, from the peer (ird) and to it
	 * (ord). */
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
	MPA_ASKING,  /* initiator: the request is to be sent, or was */
	MPA_WAITING, /* responder: no request yet */
	MPA_ASKED,   /* responder: call vb_mpa_accept() or _reject() */
	MPA_OPEN,    /* agreed; first send out, if it is not empty */
	MPA_REFUSED, /* initiator: the peer rejected, with private data */
	MPA_SHUT,    /* responder: rejected; close once out is sent */
	MPA_BROKEN,  /* the peer violates MPA, or our terms: close */
};

struct vb_mpa_setup {
	enum vb_mpa_state state;
	struct vb_mpa_offer offer; /* our own */
	struct vb_mpa_terms terms;
	/* In MPA_BROKEN: the error code of a Terminate of layer LLP (RFC 6581
	 * s9.2). If out_bytes is not 0, out holds it as an FPDU to be sent. */
	uint8_t code;
	/* The peer's frame; valid in MPA_ASKED, MPA_OPEN and MPA_REFUSED. */
	struct vb_mpa_frame peer;
	const uint8_t *private_data; /* the peer's; points into in[] */
	uint16_t private_bytes;
	/* What the peer would grant; for the program that decides. */
	uint16_t peer_ird, peer_ord;
	/* to be sent at once, all of it */
	uint8_t out[VB_MPA_FRAME_MAX];
	uint16_t out_bytes;
	uint8_t in[VB_MPA_FRAME_MAX];
	uint16_t in_bytes;
};

/* The longest private data of the program, bytes, in this revision. */
unsigned vb_mpa_private_max(unsigned revision);

/* Begin as initiator, or, vb_mpa_listen(), as responder. 0; -EINVAL: too much
 * private data, or an unknown revision. @private_data is copied. */
VB_MUST_CHECK int vb_mpa_connect(struct vb_mpa_setup *m,
				 const struct vb_mpa_offer *offer,
				 const void *private_data, unsigned bytes);
void vb_mpa_listen(struct vb_mpa_setup *m, const struct vb_mpa_offer *offer);

/* How many bytes may be received now without taking bytes behind the frame; 0:
 * none. */
unsigned vb_mpa_want(const struct vb_mpa_setup *m);
/* @count bytes arrived, at most what vb_mpa_want() said. Returns the new
 * state. */
enum vb_mpa_state vb_mpa_got(struct vb_mpa_setup *m, const void *bytes,
			     unsigned count);

/* Only in MPA_ASKED. offer.ird and offer.ord become @ird and @ord. 0 or -EINVAL
 * as above. */
VB_MUST_CHECK int vb_mpa_accept(struct vb_mpa_setup *m, uint16_t ird,
				uint16_t ord, const void *private_data,
				unsigned bytes);
/* Reject the request, also only in MPA_ASKED. 0 or -EINVAL as above. */
VB_MUST_CHECK int vb_mpa_reject(struct vb_mpa_setup *m,
				const void *private_data, unsigned bytes);

#endif

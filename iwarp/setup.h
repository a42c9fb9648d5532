/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Makes iWARP out of a TCP connection: MPA request and reply (RFC 5044 s7.1),
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
	/* RTR_SEND: a SEND of 0 bytes; RTR_WRITE: a WRITE of 0 bytes; RTR_READ:
	 * a READ of 0 bytes */
	RTR_SEND = 1 << 0,
	RTR_WRITE = 1 << 1,
	RTR_READ = 1 << 2,
	RTR_ANY = RTR_SEND | RTR_WRITE | RTR_READ,
};

/* The wishes or offers that one side puts into its frame. */
struct vb_mpa_offer {
	uint8_t revision; /* MPA's revision: 1, or 2 for enhanced frames */
	bool crc; /* true: this side insists on CRCs; false: the peer decides */
	/* the peer shall put markers into the stream that it sends */
	bool markers;
	/* The peer is on this host and may be a Verbena (VB_MPA_NEAR_ASKED). */
	bool near;
	uint8_t rtr; /* bits of enum vb_mpa_rtr; 0: no peer-to-peer mode */
	/* The most READs and atomics in progress: those of the peer (@ird) and
	 * those of this side (@ord). */
	uint16_t ird, ord;
};
/* The usual offer: revision 2, CRC, no markers, peer-to-peer by WRITE or
 * READ. */
extern const struct vb_mpa_offer vb_mpa_usual;

/* The terms that both sides agreed on. */
struct vb_mpa_terms {
	bool initiator;
	bool crc;
	bool tx_markers, rx_markers;
	/* Both sides have set the bit `near`, so each first sends the other a
	 * card, by which two queue pairs of one host find each other. */
	bool near;
	uint8_t rtr; /* the enum vb_mpa_rtr with which the initiator begins */
	uint16_t ird, ord;
	/* MSS of the TCP connection, set by the caller; 0: unknown. */
	uint16_t mss;
};

enum vb_mpa_state {
	MPA_ASKING,  /* initiator: the request is to be sent, or was sent */
	MPA_WAITING, /* responder: no request has come yet */
	/* responder: a request came; call vb_mpa_accept() or _reject() */
	MPA_ASKED,
	/* both sides agree; the caller first sends the bytes in `out`, if there
	 * are any */
	MPA_OPEN,
	/* initiator: the peer rejected the request, with private data */
	MPA_REFUSED,
	/* responder: the request is rejected; close once out is sent */
	MPA_SHUT,
	/* the peer violates MPA, or this side's terms: close the connection */
	MPA_BROKEN,
};

struct vb_mpa_setup {
	enum vb_mpa_state state;
	struct vb_mpa_offer offer; /* the MPA options that this side asks for */
	struct vb_mpa_terms terms;
	/* In MPA_BROKEN: the error code of a Terminate of layer LLP (RFC 6581
	 * s9.2). If out_bytes is not 0, out holds this Terminate as an FPDU to
	 * be sent. */
	uint8_t code;
	/* The header of the peer's frame; valid in MPA_ASKED, MPA_OPEN and
	 * MPA_REFUSED. */
	struct vb_mpa_frame peer;
	/* private data of the peer's frame, within in[] */
	const uint8_t *private_data;
	uint16_t private_bytes;
	/* The peer's IRD and ORD, at most the ORD and IRD that this side
	 * offered. */
	uint16_t peer_ird, peer_ord;
	/* bytes that the caller must send, all at once */
	uint8_t out[VB_MPA_FRAME_MAX];
	uint16_t out_bytes;
	uint8_t in[VB_MPA_FRAME_MAX];
	uint16_t in_bytes;
};

/* Returns the most bytes of a program's private data in this revision. */
unsigned vb_mpa_private_max(unsigned revision);

/* Begin as initiator (vb_mpa_connect()) or as responder (vb_mpa_listen()). 0;
 * -EINVAL: too much private data, or an unknown revision. Copies
 * @private_data. */
VB_MUST_CHECK int vb_mpa_connect(struct vb_mpa_setup *m,
				 const struct vb_mpa_offer *offer,
				 const void *private_data, unsigned bytes);
void vb_mpa_listen(struct vb_mpa_setup *m, const struct vb_mpa_offer *offer);

/* Returns how many bytes the caller may read from the socket now; further bytes
 * might belong to the stream behind the frame. 0: none. */
unsigned vb_mpa_want(const struct vb_mpa_setup *m);
/* @count bytes have arrived, at most as many as vb_mpa_want() returned. Returns
 * the new state. */
enum vb_mpa_state vb_mpa_got(struct vb_mpa_setup *m, const void *bytes,
			     unsigned count);

/* Accept the request, only in MPA_ASKED. @ird and @ord replace offer.ird and
 * offer.ord. 0; -EINVAL: the state is another, or there is too much private
 * data. */
VB_MUST_CHECK int vb_mpa_accept(struct vb_mpa_setup *m, uint16_t ird,
				uint16_t ord, const void *private_data,
				unsigned bytes);
/* Reject the request, only in MPA_ASKED. Returns 0 or -EINVAL like
 * vb_mpa_accept(). */
VB_MUST_CHECK int vb_mpa_reject(struct vb_mpa_setup *m,
				const void *private_data, unsigned bytes);

#endif

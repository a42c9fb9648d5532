/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a stream becomes iWARP: MPA's request and reply (RFC 5044 s7.1), with
 * what RFC 6581 adds: depths of READs, and who speaks first. A state machine
 * without I/O and without time-outs; it stands on wire and base alone.
 *
 *	initiator			responder
 *	vb_mpa_connect()		vb_mpa_listen()
 *	send out/out_bytes
 *					want(), got(): MPA_ASKED
 *					vb_mpa_accept(), or vb_mpa_reject()
 *					send out/out_bytes; MPA_OPEN,
 *					or MPA_SHUT
 *	want(), got(): MPA_OPEN,
 *	or MPA_REFUSED
 *
 * MPA_OPEN: hand @terms to vb_iw_start(), with the socket.
 */
#ifndef IWARP_SETUP_H
#define IWARP_SETUP_H

#include "wire/iwarp.h"

/* What is sent first so that the responder may send: RFC 6581 s5. */
enum vb_mpa_rtr {
	RTR_NONE = 0,
	RTR_SEND = 1 << 0, /* of no bytes, as the others */
	RTR_WRITE = 1 << 1,
	RTR_READ = 1 << 2,
	RTR_ANY = RTR_SEND | RTR_WRITE | RTR_READ,
};

/* What a side asks for, or grants. */
struct vb_mpa_offer {
	uint8_t revision;  /* 1, or 2: enhanced */
	bool crc;	   /* we insist on it; else what the peer says */
	bool markers;	   /* we want them in what we receive */
	bool near;	   /* the peer is of this host, and may be a Verbena */
	uint8_t rtr;	   /* set of enum vb_mpa_rtr; none: not peer-to-peer */
	uint16_t ird, ord; /* READs and atomics under way, from and to peer */
};
/* Our usual: revision 2, CRC, no markers, peer-to-peer by WRITE or READ. */
extern const struct vb_mpa_offer vb_mpa_usual;

/* What was agreed on. */
struct vb_mpa_terms {
	bool initiator;
	bool crc;
	bool tx_markers, rx_markers;
	bool near;   /* both said so: cards are shown first */
	uint8_t rtr; /* one enum vb_mpa_rtr: the initiator begins with it */
	uint16_t ird, ord;
	uint16_t mss; /* of the TCP connection, the caller's; 0: not known */
};

enum vb_mpa_state {
	MPA_ASKING,  /* initiator: the request is out, or is to be sent */
	MPA_WAITING, /* responder: for a request */
	MPA_ASKED,   /* responder: accept, or reject */
	MPA_OPEN,    /* terms are agreed on; send out first, when there is */
	MPA_REFUSED, /* initiator: by the peer, with its private data */
	MPA_SHUT,    /* responder: we refuse, once out is sent */
	MPA_BROKEN,  /* that was no MPA, or not to our terms: close */
};

struct vb_mpa_setup {
	enum vb_mpa_state state;
	struct vb_mpa_offer offer; /* ours */
	struct vb_mpa_terms terms;
	/* MPA_BROKEN: the Terminate's code of layer LLP (RFC 6581 s9.2), to
	 * be sent as an FPDU in out when out_bytes is not 0. */
	uint8_t code;
	/* The peer's frame: valid from MPA_ASKED, MPA_OPEN, MPA_REFUSED. */
	struct vb_mpa_frame peer;
	const uint8_t *private_data; /* the peer's, in in[] */
	uint16_t private_bytes;
	/* What the peer would grant us: for the program that is asked. */
	uint16_t peer_ird, peer_ord;
	/* to be sent now, all of it */
	uint8_t out[VB_MPA_FRAME_MAX];
	uint16_t out_bytes;
	uint8_t in[VB_MPA_FRAME_MAX];
	uint16_t in_bytes;
};

/* Most private data of the program's, with this revision. */
unsigned vb_mpa_private_max(unsigned revision);

/* -EINVAL: too much private data, an unknown revision. */
VB_MUST_CHECK int vb_mpa_connect(struct vb_mpa_setup *m,
				 const struct vb_mpa_offer *offer,
				 const void *private_data, unsigned bytes);
void vb_mpa_listen(struct vb_mpa_setup *m, const struct vb_mpa_offer *offer);

/* How many bytes may be received now, so that none behind the frame is taken;
 * 0: none. */
unsigned vb_mpa_want(const struct vb_mpa_setup *m);
/* They came: @bytes of @want or fewer. */
enum vb_mpa_state vb_mpa_got(struct vb_mpa_setup *m, const void *bytes,
			     unsigned count);

/* In MPA_ASKED. offer's ird and ord become these. -EINVAL as above. */
VB_MUST_CHECK int vb_mpa_accept(struct vb_mpa_setup *m, uint16_t ird,
				uint16_t ord, const void *private_data,
				unsigned bytes);
VB_MUST_CHECK int vb_mpa_reject(struct vb_mpa_setup *m,
				const void *private_data, unsigned bytes);

#endif

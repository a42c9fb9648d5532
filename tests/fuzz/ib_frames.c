/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzes the memory that a fabric's process shares with a program, from the
 * program's side. The fabric's process is hostile: an input is a row of
 * (control, length, bytes), of which each puts a frame into its ring, or writes
 * the bytes into its memory anywhere. For any input, the frames that the link
 * reports lie in the ring, whole, and a broken ring ends the connection.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/shring.h"
#include "link/ib.h"
#include "tests/fuzz/fuzz.h"
#include "wire/grh.h"
#include "wire/ib_hdr.h"
#include "wire/lrh.h"
#include "wire/verbs_ipc.h"

#define BYTES VB_SHRING_BYTES(VB_VERBS_RING)

/* @own: memory that the program writes; @theirs: memory that the fabric's
 * process writes */
static _Alignas(4096) uint8_t own[BYTES], theirs[BYTES];
static struct vb_shring_out out; /* the fabric's end of the ring */
static struct vb_shring_in in;

static int controlled; /* the link's end of the connection */

static bool has_ended(void)
{
	char byte;

	return recv(controlled, &byte, 1, MSG_DONTWAIT) == 0;
}

static void read_all(struct vb_link *l)
{
	static struct vb_rxq q;
	const uint8_t *ring = theirs + VB_SHRING_RING_AT;

	do {
		MUST(l->ops->recv(l, &q) == 0);
		MUST(q.count <= VB_RXQ_FRAMES);
		for (unsigned i = 0; i < q.count; i++) {
			const struct vb_frame *f = &q.frames[i];
			struct vb_ib_pkt pkt;

			MUST(f->bytes >= ring + VB_LRH_BYTES);
			MUST(f->len <= VB_LRH_FRAME_MAX);
			MUST(f->bytes + f->len <= theirs + BYTES);
			(void)vb_ib_parse(f->bytes, f->len, &pkt);
		}
	} while (q.count);
	/* The link has released all that it took: either the ring is empty, or
	 * it is broken. */
	MUST(l->ops->recv(l, &q) == 0 && q.count == 0);
	MUST(vb_ib_sleep(l) || has_ended());
	vb_ib_wake(l, true);
}

/* Put a valid datagram into the ring, after changing bits of it as the input
 * says. Its ICRC is right, unless @control says otherwise. */
static void send_like(uint8_t control, const uint8_t *changes, size_t len)
{
	uint8_t frame[1024] = { 0 }, *at = vb_shring_begin(&out, sizeof(frame));
	uint32_t bytes = VB_LRH_BYTES + VB_GRH_BYTES + VB_BTH_BYTES + 16 +
			 ((uint32_t)len & ~3u);
	const struct vb_lrh h = { .lnh = control & 8 ? LNH_GLOBAL : LNH_LOCAL,
				  .dlid = 1,
				  .slid = 2,
				  .words = (uint16_t)(bytes / 4) };
	struct vb_lrh changed;

	if (!at)
		return;
	vb_lrh_put(frame, &h);
	for (size_t i = 0; i < len; i++)
		frame[i] ^= changes[i];
	vb_lrh_get(frame, &changed);
	if (!(control & 4) && vb_lrh_check(&changed, bytes, 4096) == LRH_GOOD)
		vb_lrh_put_icrc(frame, bytes);
	memcpy(at, frame, bytes);
	vb_shring_commit(&out, bytes);
	(void)!vb_shring_publish(&out);
}

static void scribble(unsigned where, const uint8_t *bytes, size_t len)
{
	static const size_t starts[] = {
		offsetof(struct vb_shring_side, head),
		offsetof(struct vb_shring_side, tail),
		VB_SHRING_RING_AT,
		BYTES - 1024,
	};

	memcpy(theirs + starts[where % VB_COUNT(starts)], bytes, len);
}

static void play(struct vb_link *l, const uint8_t *bytes, size_t len)
{
	while (len >= 2) {
		size_t n = VB_MIN((size_t)bytes[1], len - 2);

		if (bytes[0] & 1)
			scribble(bytes[0] >> 1, bytes + 2, n);
		else
			send_like(bytes[0], bytes + 2, n);
		if (!(bytes[0] & 0x80))
			read_all(l);
		bytes += 2 + n;
		len -= 2 + n;
	}
	read_all(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int bell[2], control[2];
	struct vb_link *l;

	setenv("VERBENA_LOG", "quiet", 1);
	memset(own, 0, sizeof(own));
	memset(theirs, 0, sizeof(theirs));
	vb_shring_open(&out, &in, theirs, own, VB_VERBS_RING);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, bell));
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET, 0, control));
	MUST(!vb_ib_open(own, theirs, bell[0], control[0], NULL, &l));
	controlled = control[0];
	play(l, bytes, len);
	l->ops->close(l);
	close(bell[1]);
	close(control[0]);
	close(control[1]);
	return 0;
}

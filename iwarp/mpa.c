/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving side of MPA: it finds the FPDUs in the bytes received, and
 * handles an FPDU only when it has come wholly and its CRC is right. So no
 * damaged byte is placed, and a program that sees the last byte of a WRITE and
 * overwrites it cannot make the CRC fail. */
#include <stdlib.h>

#include "base/crc.h"
#include "iwarp/stream.h"

unsigned vb_iw_want(struct vb_qp *qp, struct vb_iw_rxq *in,
		    struct iovec iov[VB_IW_RX_IOV])
{
	struct vb_iw *s = vb_iw(qp);

	in->carried = s->carry_bytes;
	if (s->carry_bytes)
		memcpy(in->room, s->carry, s->carry_bytes);
	iov[0] = (struct iovec){ in->room + in->carried, VB_IW_RX_BYTES };
	return 1;
}

/* Read the lengths of the FPDU at @at. False: the FPDU is not complete. */
static bool fpdu_length(const struct vb_iw *s, const uint8_t *at, uint32_t have,
			uint32_t *ulpdu, uint32_t *total)
{
	uint32_t skip = s->terms.rx_markers && s->in.marker == 0
				? VB_MPA_MARKER_BYTES
				: 0;

	if (have < skip + VB_MPA_LEN_BYTES)
		return false;
	*ulpdu = (uint32_t)vb_load_be(at + skip, VB_MPA_LEN_BYTES);
	*total = vb_mpa_fpdu_bytes(*ulpdu);
	if (s->terms.rx_markers)
		*total = vb_marked_bytes(s->in.marker, *total);
	return have >= *total;
}

static bool crc_is_right(const uint8_t *fpdu, uint32_t total)
{
	uint32_t covered = total - VB_MPA_CRC_BYTES;

	return vb_load_le32(fpdu + covered) == vb_crc32c(0, fpdu, covered);
}

static void take_fpdu(struct vb_qp *qp, uint8_t *fpdu, uint32_t ulpdu,
		      uint32_t total) VB_REQUIRES(qp->drive)
{
	struct vb_iw *s = vb_iw(qp);

	vb_count(qp->adapter, CNT_RCVD_PKTS, 1);
	if (s->terms.crc && !crc_is_right(fpdu, total)) {
		vb_iw_refuse(qp, IWF_CRC, NULL);
		return;
	}
	if (s->terms.rx_markers) {
		if (!vb_unmark(fpdu, s->in.marker, vb_mpa_fpdu_bytes(ulpdu))) {
			vb_iw_refuse(qp, IWF_MARKER, NULL);
			return;
		}
		s->in.marker = (uint16_t)((s->in.marker + total) %
					  VB_MPA_MARKER_INTERVAL);
	}
	vb_iw_take(qp, fpdu + VB_MPA_LEN_BYTES, ulpdu);
}

static bool keep_rest(struct vb_iw *s, const uint8_t *at, uint32_t len)
{
	uint8_t *more;

	s->carry_bytes = len;
	if (len > s->carry_room) {
		more = realloc(s->carry, len);
		if (!more)
			return false;
		s->carry = more;
		s->carry_room = len;
	}
	if (len)
		memcpy(s->carry, at, len);
	return true;
}

void vb_iw_got(struct vb_qp *qp, struct vb_iw_rxq *in, size_t bytes,
	       vb_time now)
{
	struct vb_iw *s = vb_iw(qp);
	uint32_t have = in->carried + (uint32_t)bytes;
	uint8_t *at = in->room;
	uint32_t ulpdu, total;

	now = vb_qp_advance(qp, now);
	if (bytes)
		s->unheard = 0;
	while (vb_iw_lives(qp) && fpdu_length(s, at, have, &ulpdu, &total)) {
		take_fpdu(qp, at, ulpdu, total);
		at += total;
		have -= total;
	}
	/* After a fault has ended the stream, drop the bytes behind the faulty
	 * FPDU. */
	if (!keep_rest(s, at, s->phase == IW_OPEN ? have : 0))
		vb_iw_lost(qp, now);
}

void vb_iw_recv_fault(struct vb_qp *qp, struct vb_iw_rxq *in, vb_time now)
{
	vb_iw_got(qp, in, 0, now);
}

bool vb_iw_is_between(const struct vb_iw *s)
{
	return s->carry_bytes == 0 && s->in.offset == 0 &&
	       s->in.write_bytes == 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/echo.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/ipc.h"
#include "wire/mad.h"

#define UD_SEND_ONLY_CODE 0x64

bool vb_echo_may(struct vb_echo_limit *l, vb_time now)
{
	const vb_time each = VB_SEC / VB_ECHO_RATE;

	/* Unused allowances are kept, up to VB_ECHO_BURST. */
	if (now > l->since + VB_ECHO_BURST * each)
		l->since = now - VB_ECHO_BURST * each;
	if (l->since + each > now)
		return false;
	l->since += each;
	return true;
}

/* Returns the MTU of an interface; 0: not known. */
static uint32_t mtu_of(uint32_t ifindex)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };
	uint32_t mtu = 0;

	if (fd < 0)
		return 0;
	if (if_indextoname(ifindex, r.ifr_name) &&
	    ioctl(fd, SIOCGIFMTU, &r) == 0 && r.ifr_mtu > 0)
		mtu = (uint32_t)r.ifr_mtu;
	close(fd);
	return mtu;
}

bool vb_echo_is_asked(const struct vb_frame *f, const struct vb_ib_pkt *pkt,
		      struct vb_echo *answer, uint32_t *len, uint32_t *qpn)
{
	struct vb_echo ask;

	/* Queue pairs below 2 are brokers': two of these would not end. */
	if (pkt->bth.opcode != UD_SEND_ONLY_CODE ||
	    pkt->bth.dqpn != VB_GSI_QPN || pkt->deth.qkey != VB_GSI_QKEY ||
	    pkt->deth.sqpn >> VB_QPN_BITS == 0 || vb_gid_is_multicast(f->dst) ||
	    !vb_echo_get(pkt->payload, pkt->payload_bytes, &ask) ||
	    ask.kind != ECHO_ASK)
		return false;
	*len = ask.bytes;
	*qpn = pkt->deth.sqpn;
	*answer = ask;
	answer->kind = ECHO_ANSWER;
	answer->bytes = pkt->payload_bytes;
	answer->mtu = mtu_of(f->ifindex);
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "broker/echo.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "wire/ipc.h"
#include "wire/mad.h"

#define UD_SEND_ONLY_CODE 0x64

/* May the broker answer now? It grants one answer in each @each nanoseconds,
 * and unused grants are kept, up to @burst. *@since: the time up to which
 * grants were used. */
static bool is_allowed(vb_time *since, vb_time each, unsigned burst,
		       vb_time now)
{
	if (now > *since + burst * each)
		*since = now - burst * each;
	return *since + each <= now;
}

/* A question that gets no answer does not count against the limits. */
bool vb_echo_may(struct vb_echo_limit *l, const struct vb_gid *source,
		 vb_time now)
{
	const vb_time each = VB_SEC / VB_ECHO_RATE;
	const vb_time its = VB_SEC / VB_ECHO_SOURCE_RATE;
	uint64_t h = vb_hash(l->seed, vb_load_be(source->raw, 8));
	vb_time *one;

	h = vb_hash(h, vb_load_be(source->raw + 8, 8));
	one = &l->sources[h % VB_ECHO_SOURCES];
	if (!is_allowed(one, its, VB_ECHO_SOURCE_BURST, now) ||
	    !is_allowed(&l->since, each, VB_ECHO_BURST, now))
		return false;
	*one += its;
	l->since += each;
	return true;
}

uint32_t vb_echo_mtu(uint32_t ifindex)
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

	/* Queue pairs 0 and 1 are those of brokers. A broker does not answer
	 * them, because two brokers would answer each other without end. */
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
	return true;
}

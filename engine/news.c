/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/news.h"

#include <string.h>

void vb_news_gather(const struct vb_netif *n, struct vb_port_news *news)
{
	memset(news, 0, sizeof(*news));
	if (!n)
		return;
	news->ifindex = n->ifindex;
	memcpy(news->mac, n->mac, sizeof(news->mac));
	news->up = n->up;
	news->mtu = n->mtu;
	news->mbits = n->mbits;
	news->count = VB_MIN(n->count, VB_COUNT(news->addresses));
	memcpy(news->addresses, n->addresses,
	       news->count * sizeof(news->addresses[0]));
}

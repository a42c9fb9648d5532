/* SPDX-License-Identifier: BSD-2-Clause */
/* Fuzzes a gateway between InfiniBand and Ethernet with a sequence of frames
 * from both networks. Before each frame, one byte says from which network it
 * comes, and three bytes how long it is. All frames that leave the gateway must
 * be whole. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "base/bytes.h"
#include "ipoib/gateway.h"

#define FRAME_HEAD 4

static struct vb_gw *g;
static struct vb_nbrs *ib;
static uint32_t paths[VB_NBR_TABLE];
static unsigned path_count;
/* sum of all bytes that left, so that a sanitizer checks each of them */
static uint8_t sum;

static void read_frame(const uint8_t *frame, size_t len, size_t head)
{
	MUST(len >= head && len - head <= VB_GW_PACKET);
	for (size_t i = head; i < len; i++)
		sum = (uint8_t)(sum + frame[i]);
}

static void on_eth(void *arg, const uint8_t to[6], const uint8_t *frame,
		   size_t len)
{
	read_frame(to, 6, 0);
	read_frame(frame, len, VB_GW_ETH_HEADER);
	MUST(len <= 1500 + VB_GW_ETH_HEADER);
}

static void on_group(void *arg, const struct vb_gid *group,
		     const uint8_t *frame, size_t len)
{
	MUST(vb_gid_is_multicast(group) || vb_gid_is_ipv4(group));
	read_frame(frame, len, VB_IPOIB_HEADER);
	MUST(len <= 2044 + VB_IPOIB_HEADER);
}

static void on_member(void *arg, const struct vb_gid *group)
{
	MUST(vb_gid_is_multicast(group));
}

static void on_ask(void *arg, const struct vb_gid *ip)
{
	MUST(!vb_gid_is_multicast(ip));
}

static void on_find_path(void *arg, const struct vb_nbr *n)
{
	MUST(path_count < VB_NBR_TABLE);
	paths[path_count++] = n->query;
}

static bool on_prepare(void *arg, struct vb_nbr *n)
{
	n->handle = arg;
	return true;
}

static void on_release(void *arg, struct vb_nbr *n)
{
}

static void on_send(void *arg, const struct vb_nbr *n, const void *frame,
		    size_t len)
{
	read_frame(frame, len, VB_IPOIB_HEADER);
	MUST(len <= 2044 + VB_IPOIB_HEADER);
}

static void on_told(void *arg, const struct vb_gid *ip,
		    const struct vb_ipoib_hw *hw)
{
	vb_gw_told(g, ip, hw);
}

static void begin_gateway(void)
{
	static const struct vb_nbr_ops nbr_ops = { on_ask,     on_find_path,
						   on_prepare, on_release,
						   on_send,    on_told };
	static const struct vb_gw_ops ops = { on_eth, on_group, on_member,
					      on_member };
	struct vb_gw_config c = { .mac = { 2, 0, 0, 0, 3, 1 },
				  .eth_mtu = 1500 };
	const struct vb_ipoib_hw hw = { .qpn = 0x100 };

	MUST(vb_ip_net_parse("10.9.0.254/24", &c.nets.list[0]));
	MUST(vb_ip_net_parse("fd09::fe/64", &c.nets.list[1]));
	c.nets.count = 2;
	c.router[0] = vb_gid_from_ipv4((const uint8_t[4]){ 10, 9, 0, 1 });
	ib = vb_nbrs_create(&nbr_ops, &path_count, 1);
	MUST(ib);
	g = vb_gw_create(&ops, NULL, &c, ib);
	MUST(g);
	vb_gw_begin(g, &hw, 2044, VB_SEC);
}

static void give_paths(vb_time now)
{
	static const struct vb_ipoib_path path;

	while (path_count)
		vb_nbrs_path(ib, paths[--path_count], &path, now);
}

/* Give the gateway the next frame of the input. Returns the bytes consumed. */
static size_t take_one(const uint8_t *bytes, size_t left, vb_time now)
{
	size_t len =
		VB_MIN((size_t)vb_load_be(bytes + 1, 2), left - FRAME_HEAD);
	static const unsigned types[4] = { IPOIB_ARP, IPOIB_IPV4, IPOIB_IPV6,
					   0x1234 };

	if (bytes[0] & 1)
		vb_gw_from_eth(g, bytes + FRAME_HEAD, len, now);
	else
		vb_gw_from_ib(g, types[bytes[0] >> 1 & 3], bytes + FRAME_HEAD,
			      len, bytes[3], now);
	give_paths(now);
	return FRAME_HEAD + len;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	vb_time now = 2 * VB_SEC;

	path_count = 0;
	begin_gateway();
	for (size_t at = 0; at + FRAME_HEAD < len; now += VB_SEC) {
		at += take_one(bytes + at, len - at, now);
		vb_nbrs_tick(ib, now);
		vb_gw_tick(g, now);
		give_paths(now);
	}
	vb_gw_destroy(g);
	vb_nbrs_destroy(ib);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the membership reports of a host: IGMP versions 1 to 3, MLD versions 1
 * and 2. */
#include "ipoib/packet_priv.h"

enum {
	IGMP1_REPORT = 0x12,
	IGMP2_REPORT = 0x16,
	IGMP2_LEAVE = 0x17,
	IGMP3_REPORT = 0x22,
};

/* The kinds of records (RFC 3376, 4.2.12; RFC 3810, 5.2.12). */
enum {
	MODE_IS_INCLUDE = 1,
	MODE_IS_EXCLUDE,
	CHANGE_TO_INCLUDE,
	CHANGE_TO_EXCLUDE,
	ALLOW_NEW_SOURCES,
	BLOCK_OLD_SOURCES,
};

#define MLD1_BYTES 24

struct listener {
	void (*each)(void *arg, const struct vb_gid *group, bool joins);
	void *arg;
};

static void tell(const struct listener *l, const uint8_t *address, size_t bytes,
		 bool joins)
{
	struct vb_gid group;

	if (bytes == 4)
		group = vb_gid_from_ipv4(address);
	else
		memcpy(group.raw, address, 16);
	if (vb_gid_is_multicast(&group))
		l->each(l->arg, &group, joins);
}

/* Read the records of a report of IGMPv3 or MLDv2, which differ in the length
 * of addresses. A record that includes no source means that the host leaves the
 * group. */
static void read_records(struct vb_reader *r, size_t address,
			 const struct listener *l)
{
	const uint8_t *head = vb_take(r, 8);
	unsigned count = head ? (unsigned)vb_load_be(head + 6, 2) : 0;

	for (; count > 0 && !r->overrun; count--) {
		const uint8_t *record = vb_take(r, 4), *group;
		size_t sources;

		if (!record)
			return;
		sources = vb_load_be(record + 2, 2);
		group = vb_take(r, address);
		if (!group || !vb_take(r, sources * address + record[1] * 4u))
			return;
		if (record[0] < MODE_IS_INCLUDE ||
		    record[0] >= BLOCK_OLD_SOURCES ||
		    (record[0] == ALLOW_NEW_SOURCES && sources == 0))
			continue;
		tell(l, group, address,
		     sources > 0 || record[0] == MODE_IS_EXCLUDE ||
			     record[0] == CHANGE_TO_EXCLUDE);
	}
}

static void read_igmp(const uint8_t *body, size_t len, const struct listener *l)
{
	struct vb_reader r = vb_reader(body, len);

	if (len < 8 || ipoib_sum(0, body, len) != 0xffff)
		return;
	if (body[0] == IGMP3_REPORT)
		read_records(&r, 4, l);
	else if (body[0] == IGMP1_REPORT || body[0] == IGMP2_REPORT ||
		 body[0] == IGMP2_LEAVE)
		tell(l, body + 4, 4, body[0] != IGMP2_LEAVE);
}

static void read_mld(const uint8_t *body, size_t len, const struct listener *l)
{
	struct vb_reader r = vb_reader(body, len);

	if (len > 0 && body[0] == ICMPV6_MLD2_REPORT)
		read_records(&r, 16, l);
	else if (len >= MLD1_BYTES)
		tell(l, body + 8, 16, body[0] == ICMPV6_MLD_REPORT);
}

void vb_ip_report_read(const struct vb_ip *ip,
		       void (*each)(void *arg, const struct vb_gid *group,
				    bool joins),
		       void *arg)
{
	const struct listener l = { each, arg };

	if (ip->type == IPOIB_IPV4)
		read_igmp(ip->body, ip->body_bytes, &l);
	else
		read_mld(ip->body, ip->body_bytes, &l);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Text for humans: names of classes, methods, attributes and status, and the
 * addresses of a MAD. */
#include <stdio.h>

#include "base/defs.h"
#include "front/umad/umad.h"

struct name {
	unsigned value;
	const char *text;
};

static const char *find_word(const struct name *list, unsigned count,
			     unsigned value, const char *otherwise)
{
	for (unsigned i = 0; i < count; i++)
		if (list[i].value == value)
			return list[i].text;
	return otherwise;
}
#define FIND(list, value, otherwise)                                           \
	find_word(list, VB_COUNT(list), value, otherwise)

UMAD_EXPORT const char *umad_class_str(uint8_t mgmt_class)
{
	static const struct name names[] = {
		{ 0x01, "Subn" },    { 0x81, "SubnDirected" },
		{ 0x03, "SubnAdm" }, { 0x04, "Perf" },
		{ 0x05, "BM" },	     { 0x06, "DevMgt" },
		{ 0x07, "ComMgt" },  { 0x08, "SNMP" },
		{ 0x10, "DevAdm" },  { 0x11, "BootMgt" },
		{ 0x12, "BIS" },     { 0x21, "CongestionManagement" },
	};

	if ((mgmt_class >= 0x09 && mgmt_class <= 0x0f) ||
	    (mgmt_class >= 0x30 && mgmt_class <= 0x4f))
		return "Vendor";
	if (mgmt_class > 0x12 && mgmt_class < 0x21)
		return "Application";
	return FIND(names, mgmt_class, "<unknown>");
}

UMAD_EXPORT const char *umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	static const struct name common[] = {
		{ 0x01, "Get" },	{ 0x02, "Set" },
		{ 0x81, "GetResp" },	{ 0x03, "Send" },
		{ 0x05, "Trap" },	{ 0x06, "Report" },
		{ 0x86, "ReportResp" }, { 0x07, "TrapRepress" },
	};
	static const struct name sa[] = {
		{ 0x12, "GetTable" },	   { 0x92, "GetTableResp" },
		{ 0x13, "GetTraceTable" }, { 0x93, "GetTraceTableResp" },
		{ 0x14, "GetMulti" },	   { 0x94, "GetMultiResp" },
		{ 0x15, "Delete" },	   { 0x95, "DeleteResp" },
	};

	if (mgmt_class == 0x03)
		return FIND(sa, method, FIND(common, method, "<unknown>"));
	return FIND(common, method, "<unknown>");
}

UMAD_EXPORT const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id)
{
	static const struct name common[] = { { 0x01, "ClassPortInfo" },
					      { 0x02, "Notice" },
					      { 0x03, "InformInfo" } };
	static const struct name smp[] = {
		{ 0x10, "NodeDescription" },
		{ 0x11, "NodeInfo" },
		{ 0x12, "SwitchInfo" },
		{ 0x14, "GUIDInfo" },
		{ 0x15, "PortInfo" },
		{ 0x16, "PartitionTable" },
		{ 0x17, "SLtoVLMappingTable" },
		{ 0x18, "VLArbitrationTable" },
		{ 0x19, "LinearForwardingTable" },
		{ 0x1a, "RandomForwardingTable" },
		{ 0x1b, "MulticastForwardingTable" },
		{ 0x20, "SMInfo" },
		{ 0x30, "VendorDiag" },
		{ 0x31, "LedInfo" },
	};
	static const struct name sa[] = {
		{ 0x11, "NodeRecord" },	     { 0x12, "PortInfoRecord" },
		{ 0x13, "SLtoVLRecord" },    { 0x14, "SwitchInfoRecord" },
		{ 0x15, "LFTRecord" },	     { 0x16, "RFTRecord" },
		{ 0x17, "MFTRecord" },	     { 0x18, "SMInfoRecord" },
		{ 0x20, "LinkRecord" },	     { 0x31, "ServiceRecord" },
		{ 0x33, "PKeyRecord" },	     { 0x35, "PathRecord" },
		{ 0x36, "VLArbRecord" },     { 0x38, "MCMemberRecord" },
		{ 0x3a, "MultiPathRecord" }, { 0xf3, "InformInfoRecord" },
	};
	unsigned id = be16toh(attr_id);
	const char *known = FIND(common, id, "<unknown>");

	if (mgmt_class == 0x01 || mgmt_class == 0x81)
		return FIND(smp, id, known);
	return mgmt_class == 0x03 ? FIND(sa, id, known) : known;
}

UMAD_EXPORT const char *umad_common_mad_status_str(__be16 status)
{
	static const struct name fields[] = {
		{ 0, "Success" },
		{ 1, "Bad version: not supported" },
		{ 2, "Method not supported" },
		{ 3, "Method/attribute combination not supported" },
		{ 7, "Invalid field in attribute or modifier" },
	};
	unsigned s = be16toh(status);

	if (s & 1)
		return "Busy";
	if (s & 2)
		return "Redirection required";
	return FIND(fields, s >> 2 & 7, "Unknown status");
}

UMAD_EXPORT const char *umad_sa_mad_status_str(__be16 status)
{
	static const struct name codes[] = {
		{ 1, "SA: no resources" },
		{ 2, "SA: invalid request" },
		{ 3, "SA: no records" },
		{ 4, "SA: too many records" },
		{ 5, "SA: invalid GID" },
		{ 6, "SA: insufficient components" },
		{ 7, "SA: request denied" },
	};
	unsigned code = be16toh(status) >> 8;

	return code ? FIND(codes, code, "SA: unknown status")
		    : umad_common_mad_status_str(status);
}

UMAD_EXPORT void umad_addr_dump(ib_mad_addr_t *addr)
{
	fprintf(stderr,
		"ibumad: qpn %u qkey %#x lid %u sl %u path bits %u, "
		"pkey index %u\n",
		be32toh(addr->qpn), be32toh(addr->qkey), be16toh(addr->lid),
		addr->sl, addr->path_bits, addr->pkey_index);
	if (!addr->grh_present)
		return;
	fprintf(stderr,
		"ibumad: GRH: gid index %u hop limit %u class %u "
		"flow label %#x gid ",
		addr->gid_index, addr->hop_limit, addr->traffic_class,
		be32toh(addr->flow_label));
	for (unsigned i = 0; i < sizeof(addr->gid); i++)
		fprintf(stderr, "%02x", addr->gid[i]);
	fputc('\n', stderr);
}

UMAD_EXPORT void umad_dump(void *umad)
{
	struct ib_user_mad *mad = umad;

	fprintf(stderr, "ibumad: agent %u status %u timeout %u ms\n",
		mad->agent_id, mad->status, mad->timeout_ms);
	umad_addr_dump(&mad->addr);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a capture (pcap, Ethernet), checks the invariant CRC of every packet to
 * UDP port 4791, and prints which operations it has seen: icrc_check FILE. Exit
 * status 0: there were such packets, and all CRCs are right.
 */
#include <stdio.h>
#include <stdlib.h>

#include "roce.h"

static const char *const names[32] = {
	"SEND_FIRST",
	"SEND_MIDDLE",
	"SEND_LAST",
	"SEND_LAST_IMM",
	"SEND_ONLY",
	"SEND_ONLY_IMM",
	"WRITE_FIRST",
	"WRITE_MIDDLE",
	"WRITE_LAST",
	"WRITE_LAST_IMM",
	"WRITE_ONLY",
	"WRITE_ONLY_IMM",
	"READ_REQUEST",
	"READ_RESPONSE_FIRST",
	"READ_RESPONSE_MIDDLE",
	"READ_RESPONSE_LAST",
	"READ_RESPONSE_ONLY",
	"ACKNOWLEDGE",
	"ATOMIC_ACKNOWLEDGE",
	"CMP_SWAP",
	"FETCH_ADD",
};

static unsigned seen[256], good, bad;

static unsigned be16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Returns the length of the IP packet if it is a whole RoCEv2 packet; else
 * 0. */
static size_t roce_packet(const uint8_t *p, size_t len)
{
	size_t ip, whole;

	if (len < 48)
		return 0;
	if (p[0] == 0x45 && p[9] == 17) {
		ip = 20;
		whole = be16(p + 2);
	} else if (p[0] >> 4 == 6 && p[6] == 17) {
		ip = 40;
		whole = 40 + be16(p + 4);
	} else {
		return 0;
	}
	if (whole > len || whole < ip + 8 + 12 + 4)
		return 0;
	return be16(p + ip + 2) == ROCE_PORT ? whole : 0;
}

static void check(unsigned long number, const uint8_t *p, size_t len)
{
	size_t whole = roce_packet(p, len), ip = p[0] >> 4 == 4 ? 20 : 40;
	uint32_t must_be, is;

	if (!whole)
		return;
	seen[p[ip + 8]]++;
	must_be = roce_icrc(p, whole - 4);
	p += whole - 4;
	is = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	     (uint32_t)p[3] << 24;
	if (is == must_be) {
		good++;
		return;
	}
	if (bad++ < 10)
		printf("packet %lu: ICRC %08x, must be %08x\n", number, is,
		       must_be);
}

static int read_capture(FILE *file)
{
	static uint8_t packet[1 << 18];
	struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, figures, snap, link;
	} head;
	struct {
		uint32_t seconds, fraction, captured, whole;
	} record;

	if (fread(&head, sizeof(head), 1, file) != 1 ||
	    (head.magic != 0xa1b2c3d4 && head.magic != 0xa1b23c4d) ||
	    head.link != 1)
		return -1;
	for (unsigned long n = 1; fread(&record, sizeof(record), 1, file) == 1;
	     n++) {
		if (record.captured > sizeof(packet) ||
		    fread(packet, 1, record.captured, file) != record.captured)
			return -1;
		if (record.captured > 14)
			check(n, packet + 14, record.captured - 14);
	}
	return 0;
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;

	if (!file || read_capture(file)) {
		fprintf(stderr, "icrc_check: no Ethernet pcap file\n");
		return 2;
	}
	for (unsigned i = 0; i < 256; i++)
		if (seen[i])
			printf("%s %u\n",
			       i < 32 && names[i] ? names[i] : "OTHER",
			       seen[i]);
	printf("%u right, %u wrong\n", good, bad);
	return bad || !good;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA markers (RFC 5044 s4.3): after every 512 bytes of the stream, markers
 * included, four bytes say how far back the current FPDU begins. The first FPDU
 * starts with a marker. A marker right before an FPDU belongs to that FPDU and
 * says 0. */
#include "base/crc.h"
#include "iwarp/stream.h"

#define BETWEEN (VB_MPA_MARKER_INTERVAL - VB_MPA_MARKER_BYTES)

/* Returns the number of bytes until the next marker. */
static uint32_t ahead(uint32_t since)
{
	return since ? VB_MPA_MARKER_INTERVAL - since : 0;
}

static uint32_t markers_in(uint32_t since, uint32_t len)
{
	uint32_t first = ahead(since);

	return len > first ? 1 + (len - first - 1) / BETWEEN : 0;
}

uint32_t vb_marked_bytes(uint32_t since, uint32_t len)
{
	return len + VB_MPA_MARKER_BYTES * markers_in(since, len);
}

/* Returns a marker's value: the distance to the ULPDU length field, which
 * follows a leading marker. */
static uint32_t pointer(uint32_t since, uint32_t at)
{
	return at && !since ? at - VB_MPA_MARKER_BYTES : at;
}

/* Returns the offset of marker number @i in the FPDU. */
static uint32_t marker_at(uint32_t since, uint32_t i)
{
	return ahead(since) + i * VB_MPA_MARKER_INTERVAL;
}

uint32_t vb_mark(uint8_t *fpdu, uint32_t since, uint32_t len, bool crc)
{
	uint32_t count = markers_in(since, len);
	uint32_t total = len + VB_MPA_MARKER_BYTES * count, end = total;
	uint32_t covered = total - VB_MPA_CRC_BYTES;

	/* Move the last piece first: each piece moves up by the size of the
	 * markers before it. */
	for (uint32_t i = count; i-- > 0;) {
		uint32_t at = marker_at(since, i);
		uint32_t after = at + VB_MPA_MARKER_BYTES;

		memmove(fpdu + after, fpdu + at - i * VB_MPA_MARKER_BYTES,
			end - after);
		vb_store_be(fpdu + at, pointer(since, at), VB_MPA_MARKER_BYTES);
		end = at;
	}
	vb_store_le32(fpdu + covered, crc ? vb_crc32c(0, fpdu, covered) : 0);
	return total;
}

bool vb_unmark(uint8_t *fpdu, uint32_t since, uint32_t len)
{
	uint32_t count = markers_in(since, len);
	uint32_t total = len + VB_MPA_MARKER_BYTES * count;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = marker_at(since, i);
		uint32_t after = at + VB_MPA_MARKER_BYTES;
		uint32_t next = VB_MIN(marker_at(since, i + 1), total);

		/* The first two bytes of a marker are reserved. */
		if (vb_load_be(fpdu + at + 2, 2) != pointer(since, at))
			return false;
		memmove(fpdu + at - i * VB_MPA_MARKER_BYTES, fpdu + after,
			next - after);
	}
	return true;
}

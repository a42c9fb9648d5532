/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures: the frames and link packets that pass ports, as pcapng for
 * Wireshark. A frame is an ERF record of type 21 (InfiniBand), LRH to VCRC; a
 * link packet is an ERF record of type 25. The program that asked for the
 * capture writes the file. This process gives whole pcapng blocks to the
 * program's socket and never waits for the program: a packet for which the
 * socket has no room is lost and counted, and the capture ends when the program
 * has read nothing for PATIENCE.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "fabricd/capture.h"
#include "fabricd/topology_priv.h"
#include "wire/umad_ipc.h"

#define PATIENCE      (5 * VB_SEC)
#define WORDS_MOST    8
#define LINKTYPE_ERF  197
#define ERF_BYTES     16
#define ERF_FRAME     21
#define ERF_FLOW      25
#define ERF_VARYING   4 /* a flag: records have different lengths */
#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_PORT    1u
#define BLOCK_COUNTS  5u
#define BLOCK_PACKET  6u
#define BYTE_ORDER_IS 0x1a2b3c4du
#define BLOCK_MOST    (VB_FAB_FRAME_MAX + 128)

enum option {
	OPT_END = 0,
	OPT_PORT_NAME = 2,
	OPT_PACKET_FLAGS = 2,
	OPT_APPLICATION = 4,
	OPT_GOT = 4,
	OPT_LOST = 5,
	OPT_RESOLUTION = 9,
};

struct counts {
	uint64_t got, lost;
};

struct capture {
	struct vb_chain link;
	struct vb_fabricd *f;
	struct capture_outlet to;
	struct vb_fab_node *node;
	/* numbers of the ports that are captured: @first to @last */
	uint8_t first, last;
	bool flow; /* link packets are captured, too */
	/* bytes of pcapng that the capture may still grow by */
	uint64_t left;
	/* when the program's socket became full; VB_NEVER: it has room */
	vb_time stuck;
	struct counts port[VB_FAB_PORTS_MAX + 1];
	/* bytes in @bytes: whole pcapng blocks that were not given to the
	 * socket yet */
	size_t len;
	uint8_t bytes[VB_UMAD_INLINE];
};

/* --- blocks --- */

struct block {
	uint8_t bytes[BLOCK_MOST];
	size_t len;
};

static void put_u16(struct block *b, unsigned v)
{
	v = htole16((uint16_t)v);
	memcpy(b->bytes + b->len, &v, 2);
	b->len += 2;
}

static void put_u32(struct block *b, uint32_t v)
{
	v = htole32(v);
	memcpy(b->bytes + b->len, &v, 4);
	b->len += 4;
}

/* Append @len bytes to the block, and zeros up to a multiple of four. */
static void put_padded(struct block *b, const void *bytes, size_t len)
{
	size_t whole = (len + 3) & ~(size_t)3;

	memcpy(b->bytes + b->len, bytes, len);
	memset(b->bytes + b->len + len, 0, whole - len);
	b->len += whole;
}

static void put_option(struct block *b, enum option code, const void *bytes,
		       size_t len)
{
	put_u16(b, code);
	put_u16(b, (unsigned)len);
	put_padded(b, bytes, len);
}

static void put_option_u64(struct block *b, enum option code, uint64_t v)
{
	v = htole64(v);
	put_option(b, code, &v, sizeof(v));
}

static void begin_block(struct block *b, uint32_t type)
{
	b->len = 0;
	put_u32(b, type);
	put_u32(b, 0);
}

/* Complete the block: its total length stands behind its type and again at its
 * end. */
static void end_block(struct block *b)
{
	uint32_t total = htole32((uint32_t)b->len + 4);

	memcpy(b->bytes + 4, &total, 4);
	put_u32(b, (uint32_t)b->len + 4);
}

static void make_section(struct block *b)
{
	static const char maker[] = "verbena fabric capture";

	begin_block(b, BLOCK_SECTION);
	put_u32(b, BYTE_ORDER_IS);
	put_u32(b, 1); /* version 1.0 */
	put_u32(b, UINT32_MAX);
	/* The two words UINT32_MAX say that the section's length is not
	 * known. */
	put_u32(b, UINT32_MAX);
	put_option(b, OPT_APPLICATION, maker, sizeof(maker) - 1);
	put_u32(b, OPT_END);
	end_block(b);
}

static void make_port(const struct capture *c, unsigned port, struct block *b)
{
	static const uint8_t nanoseconds = 9;
	char name[VB_TOPO_ID + 8];
	int len = snprintf(name, sizeof(name), "%s[%u]",
			   c->f->topo->nodes[c->node->index].desc, port);

	for (char *s = name; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '?';
	begin_block(b, BLOCK_PORT);
	put_u16(b, LINKTYPE_ERF);
	put_u16(b, 0);
	put_u32(b, 0); /* SnapLen 0: frames are recorded in full length */
	put_option(b, OPT_PORT_NAME, name, (size_t)len);
	put_option(b, OPT_RESOLUTION, &nanoseconds, 1);
	put_u32(b, OPT_END);
	end_block(b);
}

static void put_erf(struct block *b, bool flow, size_t len, vb_time wall)
{
	uint64_t fraction = ((wall % VB_SEC) << 32) / VB_SEC;
	uint8_t tail[8] = { flow ? ERF_FLOW : ERF_FRAME, ERF_VARYING };

	put_u32(b, (uint32_t)fraction);
	put_u32(b, (uint32_t)(wall / VB_SEC));
	vb_store_be(tail + 2, ERF_BYTES + len, 2);
	vb_store_be(tail + 6, len, 2);
	put_padded(b, tail, sizeof(tail));
}

static void make_packet(struct block *b, unsigned interface,
			enum vb_fab_direction direction, const uint8_t *bytes,
			size_t len, vb_time now)
{
	vb_time wall = vb_clock_wall(now);
	uint32_t flags = htole32(direction == FAB_SENT ? 2 : 1);

	begin_block(b, BLOCK_PACKET);
	put_u32(b, interface);
	put_u32(b, (uint32_t)(wall >> 32));
	put_u32(b, (uint32_t)wall);
	put_u32(b, (uint32_t)(ERF_BYTES + len));
	put_u32(b, (uint32_t)(ERF_BYTES + len));
	put_erf(b, len <= VB_FC_WIDE_BYTES, len, wall);
	put_padded(b, bytes, len);
	put_option(b, OPT_PACKET_FLAGS, &flags, sizeof(flags));
	put_u32(b, OPT_END);
	end_block(b);
}

static void make_counts(const struct capture *c, unsigned port, vb_time now,
			struct block *b)
{
	vb_time wall = vb_clock_wall(now);

	begin_block(b, BLOCK_COUNTS);
	put_u32(b, port - c->first);
	put_u32(b, (uint32_t)(wall >> 32));
	put_u32(b, (uint32_t)wall);
	put_option_u64(b, OPT_GOT, c->port[port].got);
	put_option_u64(b, OPT_LOST, c->port[port].lost);
	put_u32(b, OPT_END);
	end_block(b);
}

/* --- to the program --- */

/* Give the waiting blocks to the program's socket. False: the socket has no
 * room, and the blocks still wait. */
static bool pour(struct capture *c, vb_time now)
{
	if (!c->len)
		return true;
	if (!c->to.put(c->to.arg, c->bytes, c->len)) {
		if (c->stuck == VB_NEVER)
			c->stuck = now;
		return false;
	}
	c->stuck = VB_NEVER;
	c->len = 0;
	return true;
}

static bool add_block(struct capture *c, const struct block *b, vb_time now)
{
	if (c->len + b->len > sizeof(c->bytes) && !pour(c, now))
		return false;
	memcpy(c->bytes + c->len, b->bytes, b->len);
	c->len += b->len;
	return true;
}

static void record(struct capture *c, uint8_t port,
		   enum vb_fab_direction direction, const uint8_t *bytes,
		   size_t len, vb_time now)
{
	/* static, because the process has only one thread */
	static struct block b;
	struct counts *counts = &c->port[port];

	if ((len <= VB_FC_WIDE_BYTES && !c->flow) || !c->left)
		return;
	make_packet(&b, port - c->first, direction, bytes, len, now);
	if (b.len > c->left) {
		c->left = 0; /* vb_fabricd_captures_run() ends it */
		return;
	}
	if (!add_block(c, &b, now)) {
		counts->lost++;
		return;
	}
	counts->got++;
	c->left -= b.len;
}

void vb_fabricd_see_wire(void *arg, struct vb_fab_node *node, uint8_t port,
			 enum vb_fab_direction direction, const uint8_t *bytes,
			 size_t len, vb_time now)
{
	struct vb_fabricd *f = arg;

	for (struct vb_chain *l = f->captures; l; l = l->next) {
		struct capture *c = VB_CONTAINER_OF(l, struct capture, link);

		if (c->node == node && port >= c->first && port <= c->last)
			record(c, port, direction, bytes, len, now);
	}
}

/* --- beginning and ending --- */

static bool is_seen(const struct vb_fabricd *f, const struct vb_fab_node *node,
		    unsigned port)
{
	for (struct vb_chain *l = f->captures; l; l = l->next) {
		struct capture *c = VB_CONTAINER_OF(l, struct capture, link);

		if (c->node == node && port >= c->first && port <= c->last)
			return true;
	}
	return false;
}

void vb_fabricd_capture_free(struct capture *c)
{
	vb_chain_del(&c->link);
	for (unsigned p = c->first; p <= c->last; p++)
		vb_fab_watch(c->node, (uint8_t)p, is_seen(c->f, c->node, p));
	free(c);
}

void vb_fabricd_capture_end(struct capture *c, vb_time now)
{
	char said[96];
	uint64_t got = 0, lost = 0;
	struct block b;

	for (unsigned p = c->first; p <= c->last; p++) {
		got += c->port[p].got;
		lost += c->port[p].lost;
		make_counts(c, p, now, &b);
		(void)!add_block(c, &b, now);
	}
	(void)!pour(c, now);
	snprintf(said, sizeof(said), "%ju packets, %ju lost%s", (uintmax_t)got,
		 (uintmax_t)lost,
		 c->left ? "" : "; the capture has as many bytes as it may");
	c->to.end(c->to.arg, VB_UMAD_DONE, said);
	vb_fabricd_capture_free(c);
}

static void end_unread_capture(struct capture *c)
{
	c->to.end(c->to.arg, -ETIMEDOUT,
		  "the capture ended: nobody has read it for 5 seconds");
	vb_fabricd_capture_free(c);
}

vb_time vb_fabricd_captures_run(struct vb_fabricd *f, vb_time now)
{
	vb_time next = VB_NEVER;
	struct vb_chain *l = f->captures;

	while (l) {
		struct capture *c = VB_CONTAINER_OF(l, struct capture, link);

		l = l->next;
		if (!c->left) {
			vb_fabricd_capture_end(c, now);
			continue;
		}
		if (pour(c, now))
			continue;
		if (now >= c->stuck + PATIENCE)
			end_unread_capture(c);
		else
			next = VB_MIN(next, c->stuck + PATIENCE);
	}
	return next;
}

static bool read_number(const char *word, uint64_t most, uint64_t *value)
{
	char *end;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 10);
	return !*end && !errno && *value <= most;
}

/* Read the words of a command into @c: "capture", NODE, PORT or "all", and then
 * "flow" or a number of bytes or both. 0; -EINVAL and @error. */
static int read_capture_words(struct capture *c, char **words, unsigned count,
			      char *error)
{
	uint64_t port = 0;

	if (count < 3)
		return vb_topo_fail(error, "usage: capture NODE PORT|all");
	c->node = vb_fabricd_node(c->f, words[1]);
	if (!c->node)
		return vb_topo_fail(error, "there is no node \"%.80s\"",
				    words[1]);
	c->first = 1;
	c->last = c->node->ports;
	if (strcmp(words[2], "all") != 0) {
		if (!read_number(words[2], c->node->ports, &port) || !port)
			return vb_topo_fail(error,
					    "\"%.80s\" has no port %.20s",
					    words[1], words[2]);
		c->first = c->last = (uint8_t)port;
	}
	for (unsigned i = 3; i < count; i++) {
		if (strcmp(words[i], "flow") == 0)
			c->flow = true;
		else if (!read_number(words[i], UINT64_MAX, &c->left) ||
			 !c->left)
			return vb_topo_fail(error,
					    "capture: \"%.40s\" is not flow, "
					    "nor a number of bytes",
					    words[i]);
	}
	return 0;
}

static int read_words(struct capture *c, const char *text, char *error)
{
	char *copy = strdup(text), *words[WORDS_MOST], *rest = copy, *word;
	unsigned count = 0;
	int rc;

	if (!copy)
		return vb_topo_fail(error, "no memory");
	while (count < WORDS_MOST && (word = strsep(&rest, "\n")))
		words[count++] = word;
	rc = read_capture_words(c, words, count, error);
	free(copy);
	return rc;
}

static void start_capture(struct capture *c, vb_time now)
{
	struct block b;

	vb_chain_add(&c->f->captures, &c->link);
	make_section(&b);
	(void)!add_block(c, &b, now);
	for (unsigned p = c->first; p <= c->last; p++) {
		make_port(c, p, &b);
		(void)!add_block(c, &b, now);
		vb_fab_watch(c->node, (uint8_t)p, true);
	}
	(void)!pour(c, now);
}

int vb_fabricd_capture_begin(struct vb_fabricd *f, const char *text,
			     const struct capture_outlet *to,
			     struct capture **made, char error[VB_TOPO_ERROR],
			     vb_time now)
{
	struct capture *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return vb_topo_fail(error, "no memory");
	c->f = f;
	c->to = *to;
	c->left = UINT64_MAX;
	c->stuck = VB_NEVER;
	rc = read_words(c, text, error);
	if (rc) {
		free(c);
		return rc;
	}
	start_capture(c, now);
	*made = c;
	return 0;
}

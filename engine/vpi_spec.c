/* SPDX-License-Identifier: BSD-2-Clause */
#include "engine/vpi_spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define OWN	  "ib"
#define PORT_MOST 254 /* the highest number of a node's port (IBA 14.2.5.3) */

/* The kinds of port that an interface carries, with the beginning of the text.
 */
static const struct {
	const char *text;
	enum vb_vpi_kind kind;
} ethernet[] = {
	{ "eth=", VPI_ETHERNET },
	{ "roce=", VPI_ETHERNET },
	{ "rocev1=", VPI_ROCEV1 },
};

/* A part of a spec: @len characters, without a zero byte at the end. */
struct part {
	const char *at;
	size_t len;
};

static bool vpi_begins(struct part p, const char *text)
{
	return p.len >= strlen(text) && memcmp(p.at, text, strlen(text)) == 0;
}

static bool vpi_equals(struct part p, const char *text)
{
	return p.len == strlen(text) && vpi_begins(p, text);
}

bool vb_vpi_is(const char *spec, size_t len)
{
	return vpi_begins((struct part){ spec, len }, VB_VPI_PREFIX);
}

/* Does a port begin at @at, behind a comma? Then it belongs to the adapter in
 * front of the comma, which has too many ports; if not, another device begins
 * there. */
static bool vpi_is_port(const char *at)
{
	struct part p = { at, strcspn(at, ",") };

	return vpi_equals(p, OWN) || vpi_begins(p, VB_FABRIC_PREFIX) ||
	       memchr(p.at, '=', p.len);
}

size_t vb_spec_length(const char *specs)
{
	size_t len = strcspn(specs, ",");

	if (!vb_vpi_is(specs, len) || memchr(specs, '+', len))
		return len;
	for (unsigned ports = 1; specs[len] == ','; ports++) {
		if (ports >= VB_VPI_PORTS && !vpi_is_port(specs + len + 1))
			break;
		len += 1 + strcspn(specs + len + 1, ",");
	}
	return len;
}

static bool take_interface(struct part name, struct vb_vpi_port *port)
{
	if (name.len == 0 || name.len >= sizeof(port->netdev))
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (!isgraph((unsigned char)name.at[i]) || name.at[i] == '/' ||
		    name.at[i] == ':')
			return false;
	memcpy(port->netdev, name.at, name.len);
	return true;
}

/* Cut "/NUMBER" off the end of @p, which is behind "ib:", if a fabric and a
 * node stand before it. Returns the number; 1: none is there; 0: it is no
 * port's. */
static unsigned cut_number(struct part *p)
{
	const char *first = memchr(p->at, '/', p->len), *last = p->at + p->len;
	unsigned number = 0;

	while (first && last > first && last[-1] != '/')
		last--;
	if (!first || last - 1 == first || last == p->at + p->len)
		return 1;
	for (const char *c = last; c < p->at + p->len; c++) {
		if (!isdigit((unsigned char)*c))
			return 1;
		number = number * 10 + (unsigned)(*c - '0');
		if (number > PORT_MOST)
			return 0;
	}
	p->len = (size_t)(last - 1 - p->at);
	return number;
}

static bool vpi_take_place(struct part p, struct vb_vpi_port *port)
{
	const size_t prefix = strlen(VB_FABRIC_PREFIX);
	struct part rest = { p.at + prefix, p.len - prefix };
	unsigned number = cut_number(&rest);

	if (!number ||
	    !vb_fabric_place_get(p.at, prefix + rest.len, &port->place))
		return false;
	port->place.port = (uint8_t)number;
	return true;
}

static bool refuse_part(char why[VB_VPI_WHY], struct part p, const char *what)
{
	snprintf(why, VB_VPI_WHY, "\"%.*s\" %s", (int)VB_MIN(p.len, (size_t)64),
		 p.at, what);
	return false;
}

static bool vpi_take_port(struct part p, struct vb_vpi_port *port,
			  char why[VB_VPI_WHY])
{
	*port = (struct vb_vpi_port){ .kind = VPI_IB };
	if (vpi_equals(p, OWN))
		return true;
	if (vpi_begins(p, VB_FABRIC_PREFIX))
		return vpi_take_place(p, port) ||
		       refuse_part(why, p,
				   "is no place; a place is ib:NODE, "
				   "ib:FABRIC/NODE or ib:FABRIC/NODE/PORT");
	if (vpi_begins(p, "iwarp=") || vpi_begins(p, "iwarp:"))
		return refuse_part(why, p,
				   "cannot be a port: iWARP's queue pairs are "
				   "TCP connections, and share nothing with "
				   "RoCE or InfiniBand");
	for (unsigned i = 0; i < VB_COUNT(ethernet); i++) {
		size_t len = strlen(ethernet[i].text);

		if (!vpi_begins(p, ethernet[i].text))
			continue;
		port->kind = ethernet[i].kind;
		return take_interface((struct part){ p.at + len, p.len - len },
				      port) ||
		       refuse_part(why, p, "names no interface");
	}
	return refuse_part(why, p,
			   "is no kind of port; a port is ib, ib:NODE, "
			   "eth=INTERFACE or rocev1=INTERFACE");
}

static bool is_same_place(const struct vb_fabric_place *a,
			  const struct vb_fabric_place *b)
{
	return a->node[0] && a->port == b->port &&
	       strcmp(a->fabric, b->fabric) == 0 &&
	       strcmp(a->node, b->node) == 0;
}

static bool vpi_is_twice(const struct vb_vpi *vpi)
{
	const struct vb_vpi_port *a = &vpi->port[0], *b = &vpi->port[1];

	if ((a->kind == VPI_IB) != (b->kind == VPI_IB))
		return false;
	return a->kind == VPI_IB ? is_same_place(&a->place, &b->place)
				 : strcmp(a->netdev, b->netdev) == 0;
}

bool vb_vpi_get(const char *spec, size_t len, struct vb_vpi *vpi,
		char why[VB_VPI_WHY])
{
	const size_t prefix = strlen(VB_VPI_PREFIX);
	char between = memchr(spec, '+', len) ? '+' : ',';
	struct part rest = { spec + prefix, len - prefix }, last = rest;
	unsigned count = 0;

	for (const char *end = rest.at; end; count++) {
		end = memchr(rest.at, between, rest.len);
		last = rest;
		if (end)
			last.len = (size_t)(end - rest.at);
		if (count < VB_VPI_PORTS &&
		    !vpi_take_port(last, &vpi->port[count], why))
			return false;
		rest.at += last.len + 1;
		rest.len -= end ? last.len + 1 : last.len;
	}
	if (count != VB_VPI_PORTS) {
		snprintf(why, VB_VPI_WHY,
			 "a VPI adapter has two ports (vpi:ib,eth=eth0), and "
			 "this one has %u",
			 count);
		return false;
	}
	return !vpi_is_twice(vpi) ||
	       refuse_part(why, last,
			   "is one port, and cannot be both ports of an "
			   "adapter");
}

static int put_vpi_port(const struct vb_vpi_port *p, char *to, size_t room)
{
	if (p->kind == VPI_IB && !p->place.node[0])
		return snprintf(to, room, OWN);
	if (p->kind == VPI_IB)
		return snprintf(to, room, VB_FABRIC_PREFIX "%s/%s/%u",
				p->place.fabric, p->place.node, p->place.port);
	return snprintf(to, room, "%s=%s",
			p->kind == VPI_ROCEV1 ? "rocev1" : "eth", p->netdev);
}

bool vb_vpi_put(const struct vb_vpi *vpi, char *spec, size_t room)
{
	size_t used = (size_t)snprintf(spec, room, VB_VPI_PREFIX);

	for (unsigned i = 0; i < VB_VPI_PORTS && used < room; i++) {
		if (i)
			used += (size_t)snprintf(spec + used, room - used, "+");
		if (used < room)
			used += (size_t)put_vpi_port(&vpi->port[i], spec + used,
						     room - used);
	}
	return used < room;
}

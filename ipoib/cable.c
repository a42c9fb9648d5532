/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the process of a fabric to attach a descriptor to an Ethernet port. */
#include "ipoib/cable.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct cable_message {
	struct vb_umad_head head;
	char text[VB_UMAD_INLINE];
};

/* Read the parts of the answer. The last part has no text (success), or says
 * what is wrong. */
static int hear_answer(int fd, vb_time due, char said[CABLE_TEXT])
{
	static struct cable_message m;
	size_t len = 0;

	for (;;) {
		unsigned none = 0;
		ssize_t n =
			vb_fabric_receive(fd, &m, sizeof(m), NULL, &none, due);
		size_t more = m.head.length;

		if (n < (ssize_t)sizeof(m.head) ||
		    (size_t)n != sizeof(m.head) + more)
			return n < 0 ? (int)n : -EPROTO;
		if (m.head.result)
			len = 0;
		more = VB_MIN(more, CABLE_TEXT - 1 - len);
		memcpy(said + len, m.text, more);
		len += more;
		said[len] = '\0';
		if (m.head.result || !m.head.length)
			return m.head.result;
	}
}

static int ask_to_attach(int fabric, const struct vb_fabric_place *place,
			 const char *port, int fd, const char *name, char *said)
{
	struct cable_message m = { .head = { .magic = VB_UMAD_MAGIC,
					     .kind = UMAD_COMMAND } };
	vb_time due = vb_fabric_due();
	int n = snprintf(m.text, sizeof(m.text), "attach\n%s\n%s\n%s",
			 place->node, port, name);
	int rc;

	m.head.length = (uint32_t)n;
	rc = vb_fabric_post(fabric, &m, sizeof(m.head) + (size_t)n, &fd, due);
	return rc ? rc : hear_answer(fabric, due, said);
}

int cable_plug(const struct vb_fabric_place *place, const char *port, int fd,
	       const char *name, char said[CABLE_TEXT])
{
	int fabric = vb_fabric_reach(place), rc = fabric;

	said[0] = '\0';
	if (fabric >= 0) {
		rc = ask_to_attach(fabric, place, port, fd, name, said);
		close(fabric);
	}
	if (rc == -ECONNREFUSED)
		snprintf(said, CABLE_TEXT, "no fabric \"%s\" is running",
			 place->fabric);
	else if (rc && !said[0])
		snprintf(said, CABLE_TEXT, "%s", strerror(-rc));
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends requests to the subnet administrator, and receives its answers, by
 * libibumad. */
#include <stdlib.h>
#include <string.h>

#include <infiniband/umad.h>

#include "ipoib/port.h"

#define SA_QPN	   1
#define SA_QKEY	   0x80010000u
#define TIMEOUT_MS 1000

/* A datagram with the header that libibumad puts before it. */
struct sa_umad {
	struct ib_user_mad head;
	uint8_t mad[VB_MAD_BYTES];
};

int ipoib_sa_open(struct ipoib_port *p)
{
	p->umad = umad_open_port(ibv_get_device_name(p->context->device),
				 PORT_NUMBER);
	if (p->umad < 0)
		return p->umad;
	p->agent = umad_register(p->umad, MAD_CLASS_SA, VB_SA_CLASS_VERSION, 1,
				 NULL);
	return p->agent < 0 ? p->agent : 0;
}

void ipoib_sa_close(struct ipoib_port *p)
{
	if (p->umad >= 0)
		umad_close_port(p->umad);
	p->umad = -1;
}

void ipoib_sa_ask(struct ipoib_port *p, const uint8_t mad[VB_MAD_BYTES],
		  int retries)
{
	struct sa_umad m;

	memset(&m, 0, sizeof(m));
	memcpy(m.mad, mad, VB_MAD_BYTES);
	(void)umad_set_addr(&m, p->sm_lid, SA_QPN, p->sm_sl, (int)SA_QKEY);
	/* If sending fails, the request is lost, as one that gets no answer. */
	(void)umad_send(p->umad, p->agent, &m, VB_MAD_BYTES, TIMEOUT_MS,
			retries);
}

/* Drop a message that is longer than every answer to the requests of this
 * program. libibumad keeps such a message in its queue until a large enough
 * buffer takes it. */
static bool drop_long(struct ipoib_port *p, int len)
{
	void *room;
	int rc;

	if (len <= VB_MAD_BYTES)
		return false;
	room = malloc(sizeof(struct ib_user_mad) + (size_t)len);
	if (!room)
		return false;
	rc = umad_recv(p->umad, room, &len, 0);
	free(room);
	return rc >= 0;
}

bool ipoib_sa_take(struct ipoib_port *p, struct ipoib_sa_answer *a)
{
	struct sa_umad m;
	int len, rc;

	do {
		len = VB_MAD_BYTES;
		rc = umad_recv(p->umad, &m, &len, 0);
		if (rc >= 0 && umad_status(&m) == 0 && len >= 0 &&
		    ipoib_sa_get(m.mad, (size_t)len, a))
			return true;
	} while (rc >= 0 || drop_long(p, len));
	return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the process of an IPoIB interface (wire/ipoib.h). */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fdmail.h"
#include "engine/fabric_path.h"
#include "engine/ipoib_path.h"

/* pause between two questions, when the process has no place for one more
 * program */
#define NAP (5 * VB_MSEC)

int vb_ipoib_reach(const char *name)
{
	int fd = vb_ipoib_connect(name);
	uid_t uid;

	if (fd < 0 || vb_fdmail_trusts_peer(fd, &uid))
		return fd;
	close(fd);
	return -EPERM;
}

int vb_ipoib_say(int fd, const struct vb_ipoib *m, vb_time due)
{
	uint8_t bytes[VB_IPOIB_BYTES];

	return vb_fabric_post(fd, bytes, vb_ipoib_put(bytes, m), NULL, due);
}

int vb_ipoib_hear(int fd, struct vb_ipoib *m, vb_time due)
{
	uint8_t bytes[VB_IPOIB_BYTES];
	const uint8_t op = m->op;
	unsigned none = 0;
	ssize_t n =
		vb_fabric_receive(fd, bytes, sizeof(bytes), NULL, &none, due);

	if (n <= 0)
		return n == 0 || n == -ECONNRESET ? -EPIPE : (int)n;
	if (!vb_ipoib_get(bytes, (size_t)n, m) || m->op != op)
		return -EPROTO;
	return m->error;
}

/* -EAGAIN: the process has no place for one more program. */
static int ask_own_once(const char *name, struct vb_ipoib *m, vb_time due)
{
	int fd = vb_ipoib_reach(name), rc;

	*m = (struct vb_ipoib){ .op = IPOIB_OWN, .version = VB_IPOIB_VERSION };
	if (fd < 0)
		return fd;
	rc = vb_ipoib_say(fd, m, due);
	if (rc == 0)
		rc = vb_ipoib_hear(fd, m, due);
	close(fd);
	return rc == -EPIPE || rc == -ECONNRESET ? -EAGAIN : rc;
}

int vb_ipoib_own(const char *name, vb_time wait, struct vb_ipoib *m)
{
	const vb_time due = vb_clock_read() + wait;
	int rc;

	while ((rc = ask_own_once(name, m, due)) == -EAGAIN &&
	       vb_clock_read() + NAP < due)
		nanosleep(&(struct timespec){ 0, (long)NAP }, NULL);
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts the processes in a group by locks of open file descriptions. Two
 * groups whose bytes are the same are counted as one: then the port stays in a
 * group that nobody needs, until the next subnet manager. */
#include "ipoib/share.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "engine/fabric_path.h"

#define BITS 4 /* bits of an enum vb_sa_join_state */

int ipoib_share_open(const char *devices)
{
	struct vb_fabric_place place;

	if (!devices ||
	    !vb_fabric_place_get(devices, strcspn(devices, ","), &place))
		return -EINVAL;
	return vb_fabric_groups_open(place.fabric);
}

/* Returns the offset in the file of the byte that stands for the lowest bit of
 * the join state of @m. The bytes for the other bits follow it. */
static off_t byte_of(const struct vb_sa_mcmember *m)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < 16; i += 8) {
		h = vb_hash(h, vb_load_be(m->mgid.raw + i, 8));
		h = vb_hash(h, vb_load_be(m->port_gid.raw + i, 8));
	}
	return (off_t)(h >> 4) * BITS;
}

static bool share_lock(int fd, short type, off_t byte)
{
	struct flock l = { .l_type = type,
			   .l_whence = SEEK_SET,
			   .l_start = byte,
			   .l_len = 1 };

	return fcntl(fd, F_OFD_SETLK, &l) == 0;
}

/* If the file system has no such locks, each process is treated as the only
 * one. */
bool ipoib_share_hold(int fd, const struct vb_sa_mcmember *m)
{
	bool held = true;

	for (unsigned i = 0; fd >= 0 && i < BITS; i++)
		if (m->join_state & 1u << i)
			held &= share_lock(fd, F_RDLCK, byte_of(m) + i) ||
				(errno != EAGAIN && errno != EACCES);
	return held;
}

/* Release this process's own lock before asking for the exclusive one:
 * otherwise two processes that leave at the same time would each find the
 * other's lock, and neither would leave the group. */
uint8_t ipoib_share_release(int fd, const struct vb_sa_mcmember *m)
{
	uint8_t left = m->join_state;

	for (unsigned i = 0; fd >= 0 && i < BITS; i++) {
		if (!(m->join_state & 1u << i))
			continue;
		(void)share_lock(fd, F_UNLCK, byte_of(m) + i);
		if (!share_lock(fd, F_WRLCK, byte_of(m) + i) &&
		    (errno == EAGAIN || errno == EACCES))
			left &= (uint8_t) ~(1u << i);
	}
	return left;
}

void ipoib_share_end(int fd, const struct vb_sa_mcmember *m)
{
	for (unsigned i = 0; fd >= 0 && i < BITS; i++)
		if (m->join_state & 1u << i)
			(void)share_lock(fd, F_UNLCK, byte_of(m) + i);
}

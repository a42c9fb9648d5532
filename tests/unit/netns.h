/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates a network namespace for a test, with loopback up: a test's use of
 * port 4791 and of the broker's name does not affect the host.
 */
#ifndef TESTS_UNIT_NETNS_H
#define TESTS_UNIT_NETNS_H

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define NETNS_SKIP 77 /* Meson's exit status of a skipped test */

static inline void netns_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	close(fd);
}

/* Become root of a new user namespace: programs that look at their user number
 * (ip) then do what the kernel permits. */
static inline bool netns_own_user(void)
{
	unsigned uid = getuid(), gid = getgid();
	char map[32];

	if (unshare(CLONE_NEWUSER) < 0)
		return false;
	netns_write("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	netns_write("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	netns_write("/proc/self/gid_map", map);
	return true;
}

static inline bool netns_loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;

	if (fd >= 0)
		close(fd);
	return up;
}

/* Enter a second new network namespace, besides the first. */
static inline bool netns_next(void)
{
	return unshare(CLONE_NEWNET) == 0 && netns_loopback_up();
}

/* Call this once, before any thread starts. False: skip the test; the reason is
 * printed as meson_tests of scripts/check.sh reads it. Root needs no user
 * namespace, which a chroot or a container may refuse. */
static inline bool netns_enter(void)
{
	if ((netns_own_user() || geteuid() == 0) && netns_next())
		return true;
	printf("# no namespace of our own: %s\n", strerror(errno));
	return false;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifies processes. A process number alone does not identify a process. If
 * a child inherits the session, the session outlives its process, and the
 * kernel may give the number to another process. The number and the user
 * together are enough: the other process then belongs to the same user, and so
 * a user can only harm their own processes. A program that becomes another user
 * between two sessions is recognized by its start time. The broker reads the
 * start time when it accepts the session. It uses the time only if the kernel
 * then says that the process belongs to the same user as the session's socket.
 */
#include "broker/process.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/birth.h"

#define STATUS_BYTES 4096

static bool process_read_file(pid_t pid, const char *name,
			      char text[STATUS_BYTES])
{
	char path[64];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(text, 1, STATUS_BYTES - 1, f);
	text[n] = '\0';
	fclose(f);
	return n > 0;
}

static bool is_users(pid_t pid, uid_t uid)
{
	char text[STATUS_BYTES];
	const char *line;
	unsigned real, effective;

	if (!process_read_file(pid, "status", text))
		return false;
	line = strstr(text, "\nUid:");
	return line && sscanf(line, "\nUid: %u %u", &real, &effective) == 2 &&
	       effective == uid;
}

void vb_process_of(int fd, struct vb_process *p)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	*p = (struct vb_process){ .uid = (uid_t)-1 };
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return;
	p->pid = peer.pid;
	p->uid = peer.uid;
	if (p->pid <= 0)
		return;
	/* The start time is read first: a process that got the number meanwhile
	 * started later, and its time is not believed. */
	p->born = vb_birth_of(p->pid);
	if (!is_users(p->pid, p->uid) || vb_birth_of(p->pid) != p->born)
		p->born = 0;
}

bool vb_process_may_listen(const struct vb_process *p, int fd)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		return false;
	return who.pid <= 0 || who.pid == p->pid;
}

bool vb_process_speaks_for(const struct vb_process *speaker,
			   const struct vb_process *owner)
{
	if (speaker->pid != owner->pid)
		return false;
	if (speaker->uid == owner->uid)
		return true;
	return speaker->born && speaker->born == owner->born &&
	       (speaker->uid == 0 || speaker->order > owner->order);
}

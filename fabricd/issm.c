/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capability IsSM of ports. While a subnet manager holds the file of its
 * port open, the port has this capability. The file is a FIFO: this process can
 * open it for writing only if another process has it open for reading, and
 * epoll reports an error when the last reader has closed it or has died.
 * inotify tells when a process opens the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabricd/fabricd_priv.h"
#include "wire/smp.h"

struct issm {
	/* this process's end of the FIFO, for writing; fd -1: no process has
	 * the FIFO open for reading */
	struct fd_watch writer;
	struct vb_chain link;
	struct vb_fabricd *f;
	struct vb_fab_node *node;
	uint8_t port;
	int wd; /* inotify's watch descriptor of the FIFO */
	char path[VB_UMAD_PATH];
};

static void set_cap(struct issm *s, bool on, vb_time now)
{
	vb_mgmt_set_caps(s->f->mgmt, s->node, s->port, VB_CAP_SM, on, now);
}

/* If a process has the FIFO open for reading, open it for writing and set IsSM.
 * This open() causes another inotify event; when that is handled, the FIFO is
 * open here already, and nothing changes. */
static void look(struct issm *s, vb_time now)
{
	if (s->writer.fd >= 0)
		return;
	s->writer.fd = open(s->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (s->writer.fd < 0)
		return;
	if (vb_fabricd_watch(s->f, &s->writer, EPOLLERR, false)) {
		close(s->writer.fd);
		s->writer.fd = -1;
		return;
	}
	set_cap(s, true, now);
}

/* The last process that had the FIFO open for reading has closed it. Another
 * process may have opened the FIFO since epoll reported this, and inotify's
 * event of that open may have been read while this process still had the FIFO
 * open. So look at the FIFO again. */
static void end_manager(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct issm *s = VB_CONTAINER_OF(w, struct issm, writer);

	if (!(events & (EPOLLERR | EPOLLHUP)))
		return;
	close(w->fd);
	w->fd = -1;
	set_cap(s, false, now);
	look(s, now);
}

static void files_opened(struct fd_watch *w, uint32_t events, vb_time now)
{
	struct vb_fabricd *f = VB_CONTAINER_OF(w, struct vb_fabricd, inotify);
	char room[4096] __attribute__((aligned(8)));
	ssize_t n = read(w->fd, room, sizeof(room));

	if (n <= 0)
		return;
	for (struct vb_chain *l = f->issms; l; l = l->next)
		look(VB_CONTAINER_OF(l, struct issm, link), now);
}

int vb_fabricd_issm_open(struct vb_fabricd *f)
{
	f->inotify.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (f->inotify.fd < 0)
		return -errno;
	f->inotify.ready = files_opened;
	return vb_fabricd_watch(f, &f->inotify, EPOLLIN, false);
}

static void free_issm(struct issm *s)
{
	if (s->writer.fd >= 0)
		close(s->writer.fd);
	(void)unlink(s->path);
	vb_chain_del(&s->link);
	free(s);
}

void vb_fabricd_issm_close(struct vb_fabricd *f)
{
	while (f->issms)
		free_issm(VB_CONTAINER_OF(f->issms, struct issm, link));
	if (f->inotify.fd >= 0)
		close(f->inotify.fd);
	f->inotify.fd = -1;
}

static struct issm *make_issm(struct vb_fabricd *f, struct vb_fab_node *node,
			      uint8_t port)
{
	struct issm *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->f = f;
	s->node = node;
	s->port = port;
	s->writer.fd = -1;
	s->writer.ready = end_manager;
	vb_chain_add(&f->issms, &s->link);
	if (snprintf(s->path, sizeof(s->path), "%s/issm-%u-%u", f->dir,
		     node->index, port) >= (int)sizeof(s->path))
		s->path[0] = '\0';
	if (!s->path[0] || (mkfifo(s->path, 0600) < 0 && errno != EEXIST) ||
	    (s->wd = inotify_add_watch(f->inotify.fd, s->path, IN_OPEN)) < 0) {
		free_issm(s);
		return NULL;
	}
	return s;
}

bool vb_fabricd_issm_path(struct vb_fabricd *f, struct vb_fab_node *node,
			  uint8_t port, char path[VB_UMAD_PATH])
{
	struct issm *s;

	for (struct vb_chain *l = f->issms; l; l = l->next) {
		s = VB_CONTAINER_OF(l, struct issm, link);
		if (s->node == node && s->port == port) {
			memcpy(path, s->path, sizeof(s->path));
			return true;
		}
	}
	s = make_issm(f, node, port);
	if (s)
		memcpy(path, s->path, sizeof(s->path));
	return s;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls that read and write: each goes to rsockets or to the C library,
 * depending on its descriptor.
 */
/* The library replaces both sendfile() and sendfile64(), so neither name may be
 * a macro for the other. */
#undef _FILE_OFFSET_BITS
#include <sys/sendfile.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/defs.h"
#include "front/rsockets/preload.h"

EXPORT ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return rsp_is_ours(fd) ? INSIDE(rrecv(rsp_target(fd), buf, len, flags))
			       : REAL(recv)(fd, buf, len, flags);
}

EXPORT ssize_t recvfrom(int fd, void *buf, size_t len, int flags,
			struct sockaddr *addr, socklen_t *alen)
{
	return rsp_is_ours(fd)
		       ? INSIDE(rrecvfrom(rsp_target(fd), buf, len, flags, addr,
					  alen))
		       : REAL(recvfrom)(fd, buf, len, flags, addr, alen);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return rsp_is_ours(fd) ? INSIDE(rrecvmsg(rsp_target(fd), msg, flags))
			       : REAL(recvmsg)(fd, msg, flags);
}

EXPORT ssize_t read(int fd, void *buf, size_t count)
{
	return rsp_is_ours(fd) ? INSIDE(rread(rsp_target(fd), buf, count))
			       : REAL(read)(fd, buf, count);
}

EXPORT ssize_t readv(int fd, const struct iovec *iov, int count)
{
	return rsp_is_ours(fd) ? INSIDE(rreadv(rsp_target(fd), iov, count))
			       : REAL(readv)(fd, iov, count);
}

EXPORT ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return rsp_is_socket(fd, false)
		       ? INSIDE(rsend(rsp_target(fd), buf, len, flags))
		       : REAL(send)(fd, buf, len, flags);
}

EXPORT ssize_t sendto(int fd, const void *buf, size_t len, int flags,
		      const struct sockaddr *addr, socklen_t alen)
{
	return rsp_is_socket(fd, false)
		       ? INSIDE(rsendto(rsp_target(fd), buf, len, flags, addr,
					alen))
		       : REAL(sendto)(fd, buf, len, flags, addr, alen);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return rsp_is_socket(fd, false)
		       ? INSIDE(rsendmsg(rsp_target(fd), msg, flags))
		       : REAL(sendmsg)(fd, msg, flags);
}

EXPORT ssize_t write(int fd, const void *buf, size_t count)
{
	return rsp_is_socket(fd, false)
		       ? INSIDE(rwrite(rsp_target(fd), buf, count))
		       : REAL(write)(fd, buf, count);
}

EXPORT ssize_t writev(int fd, const struct iovec *iov, int count)
{
	return rsp_is_socket(fd, false)
		       ? INSIDE(rwritev(rsp_target(fd), iov, count))
		       : REAL(writev)(fd, iov, count);
}

/* Does sendfile() through a buffer: the file's position advances only by the
 * bytes that were sent. */
static ssize_t send_from(int fd, int in, off_t *offset, size_t count)
{
	char buf[16384];
	size_t want = VB_MIN(count, sizeof(buf));
	off_t at = offset ? *offset : lseek(in, 0, SEEK_CUR);
	ssize_t got, sent;

	got = pread(in, buf, want, at);
	if (got <= 0)
		return got;
	sent = INSIDE(rsend(rsp_target(fd), buf, (size_t)got, 0));
	if (sent <= 0)
		return sent;
	if (offset)
		*offset = at + sent;
	else
		(void)lseek(in, at + sent, SEEK_SET);
	return sent;
}

EXPORT ssize_t sendfile(int out, int in, off_t *offset, size_t count)
{
	return rsp_is_socket(out, false)
		       ? send_from(out, in, offset, count)
		       : REAL(sendfile)(out, in, offset, count);
}

EXPORT ssize_t sendfile64(int out, int in, off64_t *offset, size_t count)
{
	return rsp_is_socket(out, false)
		       ? send_from(out, in, (off_t *)offset, count)
		       : REAL(sendfile64)(out, in, offset, count);
}

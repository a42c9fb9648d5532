/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Socket options and rfcntl(). Most TCP options have no effect on RDMA; the
 * socket stores their values so that a program reads back what it set. The
 * tables list all integer options and name those that have an effect.
 */
#include "front/rsockets/rs.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/rsocket.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "base/defs.h"
#include "front/rsockets/private_options.h"

/* Options with an integer value. id: the option of rdma_set_option() that gets
 * the value, or -1; usual: the default; most: the largest value (the least is
 * 1), or 0: any value is permitted. */
// clang-format off
static const struct {
	int level, name, id, usual, most;
} numbers[] = {
	{ SOL_SOCKET,	SO_REUSEADDR,	RDMA_OPTION_ID_REUSEADDR, 0, 0 },
	{ SOL_SOCKET,	SO_KEEPALIVE,	-1, 0, 0 },
	{ SOL_SOCKET,	SO_OOBINLINE,	-1, 0, 0 },
	{ SOL_SOCKET,	SO_BROADCAST,	-1, 0, 0 },
	{ SOL_SOCKET,	SO_PRIORITY,	-1, 0, 0 },
	{ IPPROTO_IP,	IP_TOS,		RDMA_OPTION_ID_TOS, 0, 0 },
	{ IPPROTO_IPV6,	IPV6_V6ONLY,	RDMA_OPTION_ID_AFONLY, 0, 0 },
	{ IPPROTO_IPV6,	IPV6_TCLASS,	RDMA_OPTION_ID_TOS, 0, 0 },
	{ IPPROTO_TCP,	TCP_NODELAY,	-1, 0, 0 },
	{ IPPROTO_TCP,	TCP_CORK,	-1, 0, 0 },
	{ IPPROTO_TCP,	TCP_QUICKACK,	-1, 0, 0 },
	{ IPPROTO_TCP,	TCP_MAXSEG,	-1, 0, 0 },
	{ IPPROTO_TCP,	TCP_KEEPIDLE,	-1, 7200, 32767 },
	{ IPPROTO_TCP,	TCP_KEEPINTVL,	-1, 75, 32767 },
	{ IPPROTO_TCP,	TCP_KEEPCNT,	-1, 9, 127 },
	{ IPPROTO_TCP,	TCP_USER_TIMEOUT, -1, 0, 0 },
	{ IPPROTO_TCP,	TCP_DEFER_ACCEPT, -1, 0, 0 },
};
// clang-format on
_Static_assert(VB_COUNT(numbers) <= RS_NUMBERS, "room in struct rs_sock");

/* The sizes of struct rs_wishes, which the program can set until the socket
 * connects. */
// clang-format off
static const struct {
	int level, name;
	size_t at, bytes;
	uint32_t least, most;
} sizes[] = {
#define SIZE(field)                                                            \
	offsetof(struct rs_wishes, field),                                     \
		sizeof(((struct rs_wishes *)0)->field)
	{ SOL_SOCKET,	SO_RCVBUF,	SIZE(receive_bytes), 4096, 1u << 28 },
	{ SOL_SOCKET,	SO_SNDBUF,	SIZE(send_bytes),    4096, 1u << 28 },
	{ SOL_RDMA,	RDMA_SQSIZE,	SIZE(sends),	     16, 16384 },
	{ SOL_RDMA,	RDMA_RQSIZE,	SIZE(receives),	     16, 16384 },
	{ SOL_RDMA,	RDMA_INLINE,	SIZE(inline_bytes),
	  sizeof(struct rs_iomap), 512 },
	{ SOL_RDMA,	RDMA_IOMAPSIZE,	SIZE(iomaps),	     0, 0x7f00 },
#undef SIZE
};
// clang-format on

static int number_of(int level, int name)
{
	for (unsigned i = 0; i < VB_COUNT(numbers); i++)
		if (numbers[i].level == level && numbers[i].name == name)
			return (int)i;
	return -1;
}

static int size_of(int level, int name)
{
	for (unsigned i = 0; i < VB_COUNT(sizes); i++)
		if (sizes[i].level == level && sizes[i].name == name)
			return (int)i;
	return -1;
}

static int set_number(struct rs_sock *rs, int i, int value)
{
	uint8_t tos = (uint8_t)value;
	int on = value != 0;
	bool is_tos = numbers[i].id == RDMA_OPTION_ID_TOS;

	if (numbers[i].most && (value < 1 || value > numbers[i].most))
		return -EINVAL;
	if (rs->dgram)
		(void)rs_dgram_option(rs, numbers[i].level, numbers[i].name,
				      value);
	else if (numbers[i].id >= 0 && rs->state == RS_NEW &&
		 rdma_set_option(rs->id, RDMA_OPTION_ID, numbers[i].id,
				 is_tos ? (void *)&tos : (void *)&on,
				 is_tos ? sizeof(tos) : sizeof(on)))
		return -errno;
	rs->numbers[i] = value;
	rs_keep_alive(rs);
	return 0;
}

static int get_number(const struct rs_sock *rs, int i)
{
	return rs->numbers[i] ? rs->numbers[i] : numbers[i].usual;
}

int rs_number(const struct rs_sock *rs, int level, int name)
{
	return get_number(rs, number_of(level, name));
}

void rs_options_again(struct rs_sock *rs)
{
	for (unsigned i = 0; i < VB_COUNT(numbers); i++)
		if (rs->numbers[i])
			(void)set_number(rs, (int)i, rs->numbers[i]);
}

/*
 * Sets a size. A buffer gets twice the size that the program asks for, as in
 * Linux. While the socket connects and afterwards the size is fixed, and
 * setting it has no effect.
 */
static int set_size(struct rs_sock *rs, int i, uint32_t value)
{
	uint8_t *field = (uint8_t *)&rs->wishes + sizes[i].at;
	uint16_t small;

	if (rs->state >= RS_ADDRESS)
		return sizes[i].level == SOL_RDMA ? -EINVAL : 0;
	if (sizes[i].level == SOL_SOCKET)
		value = value > sizes[i].most / 2 ? sizes[i].most : value * 2;
	value = VB_MAX(VB_MIN(value, sizes[i].most), sizes[i].least);
	small = (uint16_t)value;
	if (sizes[i].bytes == sizeof(small))
		memcpy(field, &small, sizeof(small));
	else
		memcpy(field, &value, sizeof(value));
	return 0;
}

static uint32_t get_size(const struct rs_sock *rs, int i)
{
	const uint8_t *field = (const uint8_t *)&rs->wishes + sizes[i].at;
	uint16_t small;
	uint32_t value;

	memcpy(&small, field, sizeof(small));
	if (sizes[i].bytes == sizeof(small))
		return small;
	memcpy(&value, field, sizeof(value));
	return value;
}

static int set_timeout(struct rs_sock *rs, int which, const struct timeval *t)
{
	if (t->tv_sec < 0 || t->tv_usec < 0 || t->tv_usec >= 1000000)
		return -EDOM;
	rs->timeout[which] =
		(int)VB_MIN(t->tv_sec * 1000LL + (t->tv_usec + 999) / 1000,
			    (long long)INT32_MAX);
	return 0;
}

static int options_join(struct rs_sock *rs, const void *value, socklen_t bytes)
{
	if (bytes != sizeof(rs->secret) || rs->state != RS_NEW || rs->dgram)
		return -EINVAL;
	memcpy(&rs->secret, value, sizeof(rs->secret));
	rs->joins = true;
	return 0;
}

static int announce_later(struct rs_sock *rs)
{
	rs->later = !rs->dgram;
	return 0;
}

static int set_structure(struct rs_sock *rs, int level, int name,
			 const void *value, socklen_t bytes)
{
	if (level == IPPROTO_TCP && name == TCP_CONGESTION)
		/* the adapter chooses the algorithm of congestion control */
		return 0;
	if (level == SOL_RDMA && name == RS_PORT_SECRET)
		return options_join(rs, value, bytes);
	if (level == SOL_RDMA && name == RS_LISTEN_LATER)
		return announce_later(rs);
	if (level != SOL_SOCKET)
		return -ENOPROTOOPT;
	switch (name) {
	case SO_LINGER:
		if (bytes < sizeof(rs->linger))
			return -EINVAL;
		memcpy(&rs->linger, value, sizeof(rs->linger));
		return 0;
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
		if (bytes < sizeof(struct timeval))
			return -EINVAL;
		return set_timeout(rs, name == SO_SNDTIMEO, value);
	default:
		return -ENOPROTOOPT;
	}
}

static int set(struct rs_sock *rs, int level, int name, const void *value,
	       socklen_t bytes)
{
	int i, number;

	i = number_of(level, name);
	if (i < 0 && size_of(level, name) < 0)
		return set_structure(rs, level, name, value, bytes);
	if (bytes < sizeof(number))
		return -EINVAL;
	memcpy(&number, value, sizeof(number));
	if (i >= 0)
		return set_number(rs, i, number);
	return set_size(rs, size_of(level, name), (uint32_t)number);
}

RS_EXPORT int rsetsockopt(int socket, int level, int optname,
			  const void *optval, socklen_t optlen)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = optval ? set(rs, level, optname, optval, optlen) : -EFAULT;
	return (int)rs_done(rs, rc);
}

static int options_answer(void *value, socklen_t *bytes, const void *from,
			  size_t n)
{
	n = VB_MIN(n, (size_t)*bytes);
	memcpy(value, from, n);
	*bytes = (socklen_t)n;
	return 0;
}

static int answer_number(void *value, socklen_t *bytes, int number)
{
	return options_answer(value, bytes, &number, sizeof(number));
}

static int options_take_error(struct rs_sock *rs)
{
	int error;

	rs_look(rs);
	error = rs->error;
	rs->error = 0;
	return error;
}

static int get_socket_option(struct rs_sock *rs, int name, void *value,
			     socklen_t *bytes)
{
	struct timeval t;
	int ms;

	switch (name) {
	case SO_ERROR:
		return answer_number(value, bytes, options_take_error(rs));
	case SO_TYPE:
		return answer_number(value, bytes,
				     rs->dgram ? SOCK_DGRAM : SOCK_STREAM);
	case SO_PROTOCOL:
		return answer_number(value, bytes,
				     rs->dgram ? IPPROTO_UDP : IPPROTO_TCP);
	case SO_DOMAIN:
		return answer_number(value, bytes, rs->domain);
	case SO_ACCEPTCONN:
		return answer_number(value, bytes, rs->state == RS_LISTENING);
	case SO_LINGER:
		return options_answer(value, bytes, &rs->linger,
				      sizeof(rs->linger));
	case SO_RCVTIMEO:
	case SO_SNDTIMEO:
		ms = rs->timeout[name == SO_SNDTIMEO];
		t = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
		return options_answer(value, bytes, &t, sizeof(t));
	default:
		return -ENOPROTOOPT;
	}
}

static int get_tcp_option(struct rs_sock *rs, int name, void *value,
			  socklen_t *bytes)
{
	struct tcp_info info = {
		.tcpi_state =
			rs->state == RS_CONNECTED ? TCP_ESTABLISHED : TCP_CLOSE,
		.tcpi_snd_cwnd = rs->wishes.sends,
		.tcpi_snd_mss = 1024,
	};

	if (name == TCP_CONGESTION)
		return options_answer(value, bytes, "rdma", sizeof("rdma"));
	if (name == TCP_INFO)
		return options_answer(value, bytes, &info, sizeof(info));
	return -ENOPROTOOPT;
}

static int get(struct rs_sock *rs, int level, int name, void *value,
	       socklen_t *bytes)
{
	int i = number_of(level, name);

	if (i >= 0)
		return answer_number(value, bytes, get_number(rs, i));
	i = size_of(level, name);
	if (i >= 0)
		return answer_number(value, bytes, (int)get_size(rs, i));
	if (level == SOL_RDMA && name == RS_PORT_SECRET)
		return options_answer(value, bytes, &rs->secret,
				      sizeof(rs->secret));
	if (level == SOL_SOCKET)
		return get_socket_option(rs, name, value, bytes);
	if (level == IPPROTO_TCP)
		return get_tcp_option(rs, name, value, bytes);
	return -ENOPROTOOPT;
}

RS_EXPORT int rgetsockopt(int socket, int level, int optname, void *optval,
			  socklen_t *optlen)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return -1;
	rc = optval && optlen ? get(rs, level, optname, optval, optlen)
			      : -EFAULT;
	return (int)rs_done(rs, rc);
}

static int file_control(struct rs_sock *rs, int cmd, int value)
{
	switch (cmd) {
	case F_GETFL:
		return O_RDWR | rs->file_flags;
	case F_SETFL:
		rs->file_flags = value & O_NONBLOCK;
		return 0;
	case F_GETFD:
	case F_SETFD:
		value = fcntl(rs->fd, cmd, value);
		return value < 0 ? -errno : value;
	case RS_MOVE:
	case RS_MOVE_TO:
		return rs_move(rs, cmd == RS_MOVE ? -1 : value);
	default:
		return -EINVAL;
	}
}

/* Runs command @cmd of rfcntl() on a socket of the table; RS_MOVE also finds
 * sockets that are closing. */
static int options_control(int socket, int cmd, int value)
{
	struct rs_sock *rs = rs_take(socket);
	int rc;

	if (!rs)
		return cmd == RS_MOVE ? rs_move_departing(socket) : -1;
	rc = (int)rs_done(rs, file_control(rs, cmd, value));
	if ((cmd == RS_MOVE || cmd == RS_MOVE_TO) && rc >= 0)
		rs_leave_sets(socket);
	return rc;
}

RS_EXPORT int rfcntl(int socket, int cmd, ...)
{
	va_list args;
	int value;

	va_start(args, cmd);
	value = va_arg(args, int);
	va_end(args);
	if (cmd == RS_FORGET)
		return rs_close(socket, false);
	if (cmd == RS_TAKEN)
		return rs_is_taken(socket);
	return options_control(socket, cmd, value);
}

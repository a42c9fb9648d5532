/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a command to a fabric's process and reads the answer. The `verbena
 * fabric` commands use these functions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/fdmail.h"
#include "engine/fabric_path.h"
#include "fabricd/fabricd.h"
#include "wire/umad_ipc.h"

#define ANSWER_SECONDS 10

struct text_message {
	struct vb_umad_head head;
	char text[VB_UMAD_INLINE];
};

/* Print the messages of the answer until one has the result: an error, or an
 * empty message for success. */
static int copy_answer(int fd, FILE *to, char *error)
{
	static struct text_message m;

	for (;;) {
		ssize_t n = recv(fd, &m, sizeof(m), 0);
		size_t len = n < 0 ? 0 : (size_t)n - sizeof(m.head);

		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		if ((size_t)n < sizeof(m.head) ||
		    m.head.magic != VB_UMAD_MAGIC || m.head.length != len)
			return n == 0 ? -ECONNRESET : -EPROTO;
		if (m.head.result) {
			snprintf(error, VB_TOPO_ERROR, "%.*s", (int)len,
				 m.text);
			return -EINVAL;
		}
		if (len == 0)
			return 0;
		fwrite(m.text, 1, len, to);
	}
}

int vb_fabricd_open(const char *name)
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	int fd = vb_fabric_connect(name);
	uid_t uid;

	if (fd < 0)
		return fd;
	if (!vb_fdmail_trusts_peer(fd, &uid)) {
		close(fd);
		return -EPERM;
	}
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			 sizeof(patience));
	return fd;
}

static int send_command(int fd, const char *command)
{
	struct text_message m = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_COMMAND },
	};
	size_t len = strlen(command);

	if (len >= sizeof(m.text))
		return -E2BIG;
	m.head.length = (uint32_t)len;
	memcpy(m.text, command, len);
	return vb_fdmail_send(fd, &m, sizeof(m.head) + len, NULL, 0, 0);
}

int vb_fabricd_ask(int fd, const char *command, FILE *to,
		   char error[VB_TOPO_ERROR])
{
	int rc = send_command(fd, command);

	return rc ? rc : copy_answer(fd, to, error);
}

int vb_fabricd_command(const char *name, const char *command, FILE *to,
		       char error[VB_TOPO_ERROR])
{
	int fd = vb_fabricd_open(name), rc;

	if (fd < 0)
		return fd;
	rc = vb_fabricd_ask(fd, command, to, error);
	close(fd);
	return rc;
}

/* --- captures --- */

static int copy_bytes(int file, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(file, bytes, len);

		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Ask the fabric's process to end the capture. The frames that it has captured
 * before still come. */
static int send_stop(int fd)
{
	const struct vb_umad_head stop = { .magic = VB_UMAD_MAGIC,
					   .kind = UMAD_COMMAND };

	return vb_fdmail_send(fd, &stop, sizeof(stop), NULL, 0, 0);
}

/* Receive one message of a capture and write its bytes to @file. Returns 1:
 * more messages follow; 0: this was the last message, and @said has its text;
 * or -errno. */
static int take_piece(int fd, int file, char *said)
{
	static struct text_message m;
	ssize_t n = recv(fd, &m, sizeof(m), 0);
	size_t len = n < 0 ? 0 : (size_t)n - sizeof(m.head);
	int rc;

	if (n < 0)
		return -errno;
	if ((size_t)n < sizeof(m.head) || m.head.magic != VB_UMAD_MAGIC ||
	    m.head.length != len)
		return n == 0 ? -ECONNRESET : -EPROTO;
	if (m.head.result) {
		snprintf(said, VB_TOPO_ERROR, "%.*s", (int)len, m.text);
		return m.head.result == VB_UMAD_DONE ? 0 : -EINVAL;
	}
	rc = copy_bytes(file, m.text, len);
	return rc ? rc : 1;
}

int vb_fabricd_capture(const char *name, const char *command, int file,
		       const volatile sig_atomic_t *stop,
		       char said[VB_TOPO_ERROR])
{
	/* The longest sleep in recv(). A signal's handler sets *@stop; if the
	 * signal comes just before recv(), it does not interrupt the sleep, so
	 * the sleep must be short. */
	const struct timeval often = { .tv_usec = 200000 };
	bool stopped = false;
	int fd = vb_fabricd_open(name), rc;

	if (fd < 0)
		return fd;
	rc = send_command(fd, command);
	if (rc) {
		close(fd);
		return rc;
	}
	rc = 1;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &often, sizeof(often));
	while (rc == 1 || rc == -EINTR || rc == -EAGAIN) {
		if (*stop && !stopped) {
			stopped = true;
			rc = send_stop(fd);
			if (rc)
				break;
		}
		rc = take_piece(fd, file, said);
	}
	close(fd);
	return rc;
}

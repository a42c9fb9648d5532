/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends a command to a fabric's process and reads the answer. */
#include <errno.h>
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
static int read_answer(int fd, FILE *to, char *error)
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

int vb_fabricd_command(const char *name, const char *command, FILE *to,
		       char error[VB_TOPO_ERROR])
{
	const struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	struct text_message m = {
		.head = { .magic = VB_UMAD_MAGIC, .kind = UMAD_COMMAND },
	};
	size_t len = strlen(command);
	int fd = vb_fabric_connect(name), rc;
	uid_t uid;

	if (fd < 0)
		return fd;
	if (len >= sizeof(m.text))
		rc = -E2BIG;
	else if (!vb_fdmail_trusts_peer(fd, &uid))
		rc = -EPERM;
	else {
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
				 sizeof(patience));
		m.head.length = (uint32_t)len;
		memcpy(m.text, command, len);
		rc = vb_fdmail_send(fd, &m, sizeof(m.head) + len, NULL, 0, 0);
		if (!rc)
			rc = read_answer(fd, to, error);
	}
	close(fd);
	return rc;
}

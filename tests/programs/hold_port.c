/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that is not Verbena's and holds UDP port 4791 until its standard
 * input ends. */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6,
				    .sin6_port = htons(4791) };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);
	char byte;

	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any))) {
		perror("hold_port");
		return 1;
	}
	puts("held");
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What programs rely on when they use libibumad. umad_test uses two adapters of
 * one subnet, ib0 and ib1, which VERBENA_DEVICES names and a subnet manager has
 * brought up. It prints one line for each case, as tests/programs/lib.sh counts
 * them.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/umad.h>

#define MAD  256
#define PING 0x35 /* a vendor class whose MADs have an OUI */
#define PERF 0x04
#define SA   0x03

static uint8_t openib[3] = { 0x00, 0x14, 0x05 };
static int failed;

static void result(int good, const char *name)
{
	printf("%s fabric: libibumad: %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static unsigned lid_of(const char *name)
{
	umad_port_t port;
	unsigned lid;

	if (umad_get_port(name, 0, &port) < 0)
		return 0;
	lid = port.base_lid;
	umad_release_port(&port);
	return lid;
}

/* Make a MAD for the agent of @class at the port with LID @lid. */
static struct ib_user_mad *make(void *umad, unsigned lid, uint8_t class,
				uint8_t method, uint64_t tid)
{
	uint8_t *mad = umad_get_mad(umad);

	memset(umad, 0, umad_size() + MAD);
	umad_set_addr(umad, (int)lid, 1, 0, (int)0x80010000);
	mad[0] = 1;
	mad[1] = class;
	mad[2] = class == SA ? 2 : 1;
	mad[3] = method;
	tid = htobe64(tid);
	memcpy(mad + 8, &tid, 8);
	if (class == PING)
		memcpy(mad + 37, openib, 3);
	return umad;
}

static void ports_and_names(void)
{
	char names[4][UMAD_CA_NAME_LEN];
	struct umad_device_node *list = umad_get_ca_device_list();
	__be64 guids[4];
	umad_ca_t ca;

	result(umad_get_cas_names(names, 4) == 2 && !strcmp(names[1], "ib1"),
	       "names of adapters");
	result(list && list->next && !strcmp(list->next->ca_name, "ib1") &&
		       umad_sort_ca_device_list(&list, 0) == 0 &&
		       !strcmp(list->ca_name, "ib0"),
	       "list of adapters");
	umad_free_ca_device_list(list);
	result(umad_get_ca("ib1", &ca) == 0 && ca.ports[1] &&
		       ca.ports[1]->state == 4 && ca.ports[1]->pkeys_size > 0 &&
		       ca.ports[1]->pkeys[0] == 0xffff,
	       "an adapter with its ports");
	result(umad_get_ca_portguids("ib1", guids, 4) == ca.numports + 1 &&
		       guids[1] == ca.ports[1]->port_guid && guids[0] == 0,
	       "GUIDs of ports");
	umad_release_ca(&ca);
	result(umad_get_ca("ib9", &ca) == -ENODEV &&
		       umad_open_port("mlx5_0", 1) < 0 &&
		       umad_open_port("ib0", 9) < 0,
	       "what is not there");
}

/* A program that polls learns of a MAD; a MAD that is too long stays in the
 * queue. */
static void receiving(int a, int b, unsigned lid)
{
	uint8_t umad[sizeof(struct ib_user_mad) + MAD];
	struct pollfd p = { .fd = b, .events = POLLIN };
	long all[16 / sizeof(long)];
	int client, server, len = MAD, agent, n;

	memset(all, 0xff, sizeof(all));
	client = umad_register_oui(a, PING, 0, openib, NULL);
	server = umad_register_oui(b, PING, 0, openib, all);
	result(client == 0 && server == 0, "agents have numbers from 0");
	result(umad_register_oui(b, PING, 0, openib, all) == -EPERM,
	       "a second server is -EPERM");
	result(umad_register_oui(b, 0x03, 0, openib, all) == -EINVAL,
	       "a class without OUI is -EINVAL");
	len = MAD;
	errno = 0;
	result(umad_recv(b, umad, &len, 0) < 0 && errno == EAGAIN,
	       "no time to wait: EAGAIN");
	len = MAD;
	result(umad_recv(b, umad, &len, 50) == -ETIMEDOUT, "-ETIMEDOUT");
	result(poll(&p, 1, 0) == 0, "nothing to poll");
	make(umad, lid, PING, 1, 0x1122334455667788);
	umad_send(a, client, umad, MAD, 5000, 0);
	result(poll(&p, 1, 5000) == 1, "a MAD makes the descriptor readable");
	len = 100;
	errno = 0;
	n = umad_recv(b, umad, &len, 1000);
	result(n < 0 && errno == EINVAL && len == MAD,
	       "no room for a MAD: EINVAL and the length");
	agent = umad_recv(b, umad, &len, 1000);
	result(agent == server && len == MAD &&
		       be16toh(umad_get_mad_addr(umad)->lid) == lid_of("ib0"),
	       "and the MAD has stayed");
	((uint8_t *)umad_get_mad(umad))[3] |= 0x80;
	umad_send(b, server, umad, MAD, 0, 0);
	len = MAD;
	agent = umad_recv(a, umad, &len, 5000);
	result(agent == client && umad_status(umad) == 0 &&
		       !memcmp((uint8_t *)umad_get_mad(umad) + 8,
			       "\x11\x22\x33\x44\x55\x66\x77\x88", 8),
	       "the answer has the request's whole transaction ID");
	result(umad_unregister(b, server) == 0 &&
		       umad_unregister(b, server) != 0,
	       "unregistering, once");
	umad_unregister(a, client);
}

static void timeouts(int a)
{
	uint8_t umad[sizeof(struct ib_user_mad) + MAD];
	int client = umad_register(a, PERF, 1, 0, NULL), len = MAD;
	double begin = seconds(), took;

	/* the MAD goes to a LID that no port has */
	make(umad, 0xbfff, PERF, 1, 77);
	umad_send(a, client, umad, MAD, 100, 3);
	umad_recv(a, umad, &len, 5000);
	took = seconds() - begin;
	result(umad_status(umad) == ETIMEDOUT && len == 24 &&
		       ((uint8_t *)umad_get_mad(umad))[15] == 77,
	       "a request without answer comes back, status 110, 24 bytes");
	result(took > 0.39 && took < 1.5, "after four times its timeout");
	umad_unregister(a, client);
}

/* A whole table of the subnet administrator arrives as one message. */
static void tables(int a)
{
	uint8_t *umad = calloc(1, sizeof(struct ib_user_mad) + 65536);
	int client = umad_register(a, SA, 2, 1, NULL), len = MAD, n;
	umad_port_t port;

	umad_get_port("ib0", 1, &port);
	make(umad, port.sm_lid, SA, 0x12, 9);
	/* attribute 0x35 is PathRecord */
	((uint8_t *)umad_get_mad(umad))[17] = 0x35;
	umad_send(a, client, umad, MAD, 5000, 0);
	umad_release_port(&port);
	errno = 0;
	n = umad_recv(a, umad, &len, 5000);
	result(n < 0 && errno == ENOSPC && len > MAD &&
		       ((uint8_t *)umad_get_mad(umad))[1] == SA &&
		       ((uint8_t *)umad_get_mad(umad))[3] == 0x92,
	       "RMPP: the length first, and the first segment");
	n = umad_recv(a, umad, &len, 1000);
	result(n == client && (len - 56) % 64 == 0 && len > MAD,
	       "RMPP: all of the message");
	free(umad);
}

/* A child of fork can use the inherited descriptor of a port; a duplicate of a
 * descriptor is the same port. */
static void descriptors(int a)
{
	int copy = dup(a), status;
	pid_t child = fork();

	if (child == 0) {
		int agent = umad_register(copy, 0x0a, 1, 0, NULL);

		_exit(agent < 0 || umad_unregister(copy, agent) != 0);
	}
	waitpid(child, &status, 0);
	result(status == 0 && umad_get_fd(a) == a,
	       "the port works in a child, by a duplicate");
	umad_close_port(copy);
}

int main(void)
{
	int a, b;

	umad_init();
	ports_and_names();
	a = umad_open_port("ib0", 0);
	b = umad_open_port("ib1", 1);
	if (a < 0 || b < 0) {
		result(0, "ports can be opened");
		return 1;
	}
	receiving(a, b, lid_of("ib1"));
	timeouts(a);
	tables(a);
	descriptors(a);
	umad_close_port(a);
	umad_close_port(b);
	umad_done();
	return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor PEER`: packets of each size to another host and back. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/doctor.h"
#include "cli/finding.h"
#include "engine/probe.h"

#define ROCE_PORT	4791
#define NAME_PATIENCE	2 /* seconds for a name server */
#define ROUNDS		3
#define ROUND		(300 * VB_MSEC)
#define LAST_ROUND	(500 * VB_MSEC)
#define TOUCH_MS	500
#define MTU_CODES	5
#define SMALLEST	32
#define SIZES		(MTU_CODES + 1)
#define MTU_BYTES(code) (128u << (code))
/* A payload with which the packet is as long as a WRITE's of that MTU. */
#define PAYLOAD(mtu) ((mtu) + 8)
/* bits of a question's number: the index of its size; and whether the answer is
 * to be short */
#define SIZE_BITS 0xfu
#define ONE_WAY	  0x10u

struct peer {
	const char *name;
	char text[VB_GID_TEXT];
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} to, from;
	struct vb_gid to_gid, from_gid;
	const struct vb_cli_port *port; /* the port that reaches the peer */
	int index;			/* index of the port's GID */
};

struct size {
	uint32_t mtu, bytes;
	unsigned asked, answered;
	bool arrives; /* the peer answered by a short packet */
};

struct survey {
	struct size sizes[SIZES];
	unsigned count;
	uint32_t peer_mtu;
	int error;   /* errno by which a host said that packets do not arrive */
	int refused; /* errno with which the kernel refused to send */
};

/* Functions that find the peer's address. */

struct lookup {
	const char *name;
	struct addrinfo *found;
	int rc;
};

static void *peer_look_up(void *arg)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct lookup *l = arg;

	l->rc = getaddrinfo(l->name, NULL, &hints, &l->found);
	return NULL;
}

/* A name server may take long, so a thread asks it; the thread that is late
 * keeps its struct lookup. */
static struct addrinfo *find_address(const char *name, const char **why)
{
	struct lookup *l = calloc(1, sizeof(*l));
	struct timespec until;
	struct addrinfo *found;
	pthread_t thread;

	*why = "no memory";
	if (!l)
		return NULL;
	l->name = name;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += NAME_PATIENCE;
	if (pthread_create(&thread, NULL, peer_look_up, l))
		return NULL;
	*why = "the name server does not answer";
	if (pthread_timedjoin_np(thread, NULL, &until))
		return NULL;
	*why = l->rc ? gai_strerror(l->rc) : NULL;
	found = l->rc ? NULL : l->found;
	free(l);
	return found;
}

static struct vb_gid gid_of_address(const struct sockaddr *a)
{
	struct vb_gid gid;

	if (a->sa_family == AF_INET)
		return vb_gid_from_ipv4(
			(const uint8_t *)&((const struct sockaddr_in *)a)
				->sin_addr);
	memcpy(gid.raw, &((const struct sockaddr_in6 *)a)->sin6_addr,
	       sizeof(gid.raw));
	return gid;
}

/* Ask the kernel from which address packets go to the peer. 0 or -errno. */
static int find_route(struct peer *p)
{
	socklen_t len = sizeof(p->from);
	int fd = socket(p->to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	/* the port is at the same offset in IPv6 addresses */
	p->to.v4.sin_port = htons(ROCE_PORT);
	if (fd < 0)
		return -errno;
	if (connect(fd, &p->to.any,
		    p->to.any.sa_family == AF_INET ? sizeof(p->to.v4)
						   : sizeof(p->to.v6)) < 0 ||
	    getsockname(fd, &p->from.any, &len) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Find the device and the index of the GID by which programs reach the peer. */
static void find_gid(struct peer *p, const struct vb_cli_ports *ports)
{
	for (unsigned i = 0; i < ports->count && !p->port; i++) {
		p->index =
			vb_cli_gid_index(&ports->ports[i]->port, &p->from_gid);
		if (p->index >= 0)
			p->port = ports->ports[i];
	}
}

/* The peer is this host by a loopback address, which most devices do not have:
 * packets go to an address that a device has, as librdmacm's do. */
static void use_own_address(struct peer *p, const struct vb_cli_ports *ports)
{
	if (ports->count && vb_cli_best_gid(&ports->ports[0]->port) >= 0) {
		const struct vb_port *port = &ports->ports[0]->port;

		p->from_gid = port->gids[vb_cli_best_gid(port)].gid;
		p->to_gid = p->from_gid;
	}
}

static bool locate(struct peer *p, const struct vb_cli_ports *ports)
{
	const char *why;
	struct addrinfo *a = find_address(p->name, &why);
	int rc;

	if (!a) {
		vb_finding_add("peer-name", FINDING_PROBLEM,
			       vb_finding_text("getent hosts %s",
					       vb_finding_quoted(p->name)),
			       "%s is no address and no known name: %s",
			       p->name, why);
		return false;
	}
	memcpy(&p->to, a->ai_addr, VB_MIN(a->ai_addrlen, sizeof(p->to)));
	freeaddrinfo(a);
	p->to_gid = gid_of_address(&p->to.any);
	vb_cli_address_text(&p->to_gid, p->text);
	rc = find_route(p);
	if (rc) {
		vb_finding_add("peer-route", FINDING_PROBLEM,
			       vb_finding_text("ip route get %s",
					       vb_finding_quoted(p->name)),
			       "this host has no route to %s (%s): %s", p->name,
			       p->text, strerror(-rc));
		return false;
	}
	p->from_gid = gid_of_address(&p->from.any);
	if (vb_gid_is_loopback(&p->from_gid))
		use_own_address(p, ports);
	find_gid(p, ports);
	return true;
}

/* Functions that ask the peer for echoes. */

static void plan_sizes(struct survey *s, const struct peer *p)
{
	s->sizes[s->count++] = (struct size){ .bytes = SMALLEST };
	for (unsigned code = 1; code <= p->port->port.active_mtu; code++)
		s->sizes[s->count++] =
			(struct size){ MTU_BYTES(code),
				       PAYLOAD(MTU_BYTES(code)), 0, 0, false };
}

static void peer_take_answer(struct survey *s, const struct vb_probe_answer *a)
{
	unsigned i = a->number & SIZE_BITS;

	if (a->error) {
		s->error = a->error;
		return;
	}
	if (i >= s->count)
		return;
	s->peer_mtu = a->mtu;
	if (a->number & ONE_WAY)
		s->sizes[i].arrives = true;
	else
		s->sizes[i].answered++;
}

/* Ask for each size, and hear answers for @patience. */
static void ask_round(struct vb_probe *probe, const struct peer *p,
		      struct survey *s, uint32_t flags, vb_time patience)
{
	vb_time until = vb_clock_read() + patience;
	struct vb_probe_answer a;

	for (unsigned i = 0; i < s->count; i++) {
		struct size *z = &s->sizes[i];
		int rc;

		if (flags && z->answered)
			continue;
		rc = vb_probe_ask(probe, &p->from_gid, &p->to_gid,
				  p->port->port.ifindex, i | flags, z->bytes,
				  flags ? SMALLEST : z->bytes);
		if (rc)
			s->refused = -rc;
		else if (!flags)
			z->asked++;
	}
	while (vb_probe_hear(probe, until, &a))
		peer_take_answer(s, &a);
}

static bool all_answered(const struct survey *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if (!s->sizes[i].answered)
			return false;
	return true;
}

static bool any_answered(const struct survey *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->sizes[i].answered)
			return true;
	return false;
}

static void survey_peer(struct vb_probe *probe, const struct peer *p,
			struct survey *s)
{
	for (unsigned i = 0; i < ROUNDS && !s->error; i++)
		ask_round(probe, p, s, 0, ROUND);
	if (!all_answered(s) && !s->error)
		ask_round(probe, p, s, ONE_WAY, LAST_ROUND);
}

/* Functions that add the findings. */

/* Connects to a TCP port of the peer that is most likely closed. True: the host
 * itself has answered. */
static bool peer_is_there(const struct peer *p)
{
	int fd = socket(p->to.any.sa_family,
			SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct pollfd wait = { fd, POLLOUT, 0 };
	int error = ETIMEDOUT;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return false;
	if (connect(fd, &p->to.any,
		    p->to.any.sa_family == AF_INET ? sizeof(p->to.v4)
						   : sizeof(p->to.v6)) == 0)
		error = 0;
	else if (errno == EINPROGRESS && poll(&wait, 1, TOUCH_MS) == 1)
		getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	else if (errno == ECONNREFUSED)
		error = errno;
	close(fd);
	return error == 0 || error == ECONNREFUSED;
}

static void say_silence(const struct peer *p)
{
	if (peer_is_there(p))
		vb_finding_add(
			"peer", FINDING_PROBLEM,
			"nft list ruleset   # there and here; then: nft insert "
			"rule inet filter input udp dport 4791 accept",
			"%s (%s) is there, but answers no packet to UDP port "
			"4791: a firewall drops them, or its RoCE is not "
			"Verbena (an adapter, rdma_rxe)",
			p->name, p->text);
	else
		vb_finding_add(
			"peer", FINDING_PROBLEM,
			vb_finding_text("ping %s", vb_finding_quoted(p->name)),
			"nothing was heard from %s (%s): the host is off, or "
			"a firewall drops all packets",
			p->name, p->text);
}

static void say_returned(const struct peer *p, int error)
{
	if (error == ECONNREFUSED)
		vb_finding_add("peer", FINDING_PROBLEM,
			       "verbena doctor --answer 60   # there",
			       "%s (%s) answers that its UDP port 4791 is "
			       "closed: no program there uses Verbena now, or "
			       "a firewall rejects packets",
			       p->name, p->text);
	else
		vb_finding_add(
			"peer", FINDING_PROBLEM,
			vb_finding_text("ping %s", vb_finding_quoted(p->name)),
			"packets to %s (%s) do not arrive: %s", p->name,
			p->text, strerror(error));
}

/* Adds the finding that packets above some size do not arrive. */
static void say_too_long(const struct peer *p, const struct survey *s)
{
	const struct size *good = NULL, *bad = NULL;

	for (unsigned i = 0; i < s->count; i++) {
		if (s->sizes[i].answered)
			good = &s->sizes[i];
		else if (!bad)
			bad = &s->sizes[i];
	}
	/* With an MTU below 1280 the kernel removes an interface's IPv6
	 * addresses. */
	vb_finding_add(
		"peer-mtu", FINDING_PROBLEM,
		good && good->mtu
			? vb_finding_text("-m %u   # to both programs "
					  "(ibv_*_pingpong, perftest); "
					  "or: sudo ip link set %s mtu "
					  "%u",
					  good->mtu,
					  vb_finding_quoted(p->port->at.netdev),
					  VB_MAX(s->peer_mtu, 1280u))
			: vb_finding_text("ip link   # compare the MTU "
					  "here and there"),
		"packets with %u bytes or more %s %s (%s): this "
		"interface has an MTU of %u, the peer's %u",
		bad->mtu ? bad->mtu : bad->bytes,
		bad->arrives ? "come to, but not back from," : "do not get to",
		p->name, p->text, p->port->port.netdev_mtu, s->peer_mtu);
}

static void say_loss(const struct peer *p, const struct survey *s)
{
	unsigned asked = 0, answered = 0;

	for (unsigned i = 0; i < s->count; i++) {
		asked += s->sizes[i].asked;
		answered += VB_MIN(s->sizes[i].answered, s->sizes[i].asked);
	}
	if (answered == asked)
		vb_finding_add("peer", FINDING_OK, NULL,
			       "%u packets with %u to %u bytes went to %s (%s) "
			       "and back",
			       asked, SMALLEST,
			       s->sizes[s->count - 1].bytes - 8, p->name,
			       p->text);
	else
		vb_finding_add("peer", FINDING_WARNING,
			       vb_finding_text("ping -f %s",
					       vb_finding_quoted(p->name)),
			       "%u of %u packets to %s (%s) and back were "
			       "lost; programs work, but slowly",
			       asked - answered, asked, p->name, p->text);
	if (s->peer_mtu && s->peer_mtu != p->port->port.netdev_mtu)
		vb_finding_add("peer-mtu", FINDING_NOTE,
			       vb_finding_text("-m %u   # to both programs",
					       s->sizes[s->count - 1].mtu),
			       "the MTU is %u here and %u there: programs that "
			       "connect by librdmacm use what both carry, "
			       "others must be told",
			       p->port->port.netdev_mtu, s->peer_mtu);
}

static void judge_survey(const struct peer *p, const struct survey *s)
{
	if (all_answered(s))
		say_loss(p, s);
	else if (any_answered(s))
		say_too_long(p, s);
	else if (s->error)
		say_returned(p, s->error);
	else if (s->refused)
		vb_finding_add("peer", FINDING_PROBLEM,
			       vb_finding_text("ip route get %s",
					       vb_finding_quoted(p->name)),
			       "packets to %s (%s) cannot be sent: %s", p->name,
			       p->text, strerror(s->refused));
	else
		say_silence(p);
}

void vb_doctor_peer(const struct vb_cli_ports *ports, const char *name)
{
	struct peer p = { .name = name };
	struct survey s = { 0 };
	struct vb_probe *probe;
	int rc;

	if (!locate(&p, ports))
		return;
	if (!p.port) {
		vb_finding_add("peer-device", FINDING_PROBLEM,
			       "verbena devices",
			       "packets to %s (%s) leave by an interface that "
			       "is no device of Verbena's",
			       p.name, p.text);
		return;
	}
	vb_finding_add("peer-device", FINDING_OK, NULL,
		       "%s (%s) is reached by %s: -d %s -g %d (perftest: -d %s "
		       "-x %d)",
		       p.name, p.text, p.port->device.name, p.port->device.name,
		       p.index, p.port->device.name, p.index);
	rc = vb_probe_open(&probe);
	if (rc) {
		vb_finding_add("peer", FINDING_PROBLEM, NULL,
			       "%s cannot be asked, because this host cannot "
			       "use UDP port 4791",
			       p.name);
		return;
	}
	plan_sizes(&s, &p);
	survey_peer(probe, &p, &s);
	vb_probe_close(probe);
	judge_survey(&p, &s);
}

int vb_doctor_answer(double seconds)
{
	struct timespec ts = { (time_t)seconds,
			       (long)((seconds - (double)(time_t)seconds) *
				      1e9) };
	struct vb_probe *probe;
	int rc = vb_probe_open(&probe);

	if (rc) {
		fprintf(stderr,
			"verbena doctor: UDP port 4791 cannot be used here: "
			"%s; `verbena doctor` says why\n",
			strerror(-rc));
		return EXIT_FAILURE;
	}
	nanosleep(&ts, NULL);
	vb_probe_close(probe);
	return EXIT_SUCCESS;
}

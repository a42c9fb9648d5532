/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program behind an IPoIB interface, which `verbena ipoib` starts with one
 * adapter of a fabric as its first device. It ends on SIGTERM and SIGINT, and
 * leaves its groups then.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "ipoib/background.h"
#include "ipoib/iface_priv.h"

#define DEFAULT_PKEY 0xffff
#define FULL_MEMBER  0x8000
#define USAGE	     125
/* if the interface is not up after this time, the program prints what it waits
 * for */
#define PATIENCE (5 * VB_SEC)

struct options {
	const struct iface_kind *kind;
	const char *name;
	int network; /* number of the Ethernet network */
	uint16_t pkey;
	struct iface_gateway_wish gateway;
	/* `verbena ether`: attach a TAP interface to a switch, and make no
	 * IPoIB interface */
	bool plug;
	bool daemon;
	bool connected;
	struct vb_ip_net addresses[VB_IP_NETS];
	unsigned count;
};

enum source { TUN, CHANNEL, EVENTS, SA, CM, ASKED, NETLINK, STOP, SOURCES };

/* --- options --- */

/* the command by which a user has started this program */
static const char *command = "verbena ipoib";

static int usage(void)
{
	fprintf(stderr,
		"usage: verbena-ipoib [--ethernet NETWORK | --gateway SWITCH "
		"| --plug SWITCH]\n\t[--port PORT] [--mtu BYTES] [--router "
		"ADDRESS] [--name NAME]\n\t[--pkey 0xPKEY] "
		"[--mode datagram|connected] [--daemon]\n\t"
		"[ADDRESS/LENGTH]...\n"
		"It is started by verbena ipoib, eoib, gateway and ether.\n");
	return USAGE;
}

static bool parse_pkey(const char *text, uint16_t *pkey)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	*pkey = (uint16_t)(v | FULL_MEMBER);
	return end != text && !*end && v <= 0xffff && (v & ~FULL_MEMBER);
}

/* Read the number of a network, which has 16 bits. */
static bool parse_network(const char *text, struct options *o)
{
	char *end;
	unsigned long v = strtoul(text, &end, 0);

	command = "verbena eoib";
	o->kind = &iface_eth;
	o->network = (int)(v & 0xffff);
	return end != text && !*end && v <= 0xffff;
}

/* Read the mode, by the words of Linux's file `mode`. */
static bool parse_mode(const char *text, bool *connected)
{
	*connected = strcmp(text, "connected") == 0;
	return *connected || strcmp(text, "datagram") == 0;
}

/* Read the argument of --gateway or (@plug) --plug, which names a switch. */
static bool parse_switch(const char *text, bool plug, struct options *o)
{
	command = plug ? "verbena ether" : "verbena gateway";
	o->kind = &iface_gateway;
	o->plug = plug;
	return vb_fabric_place_get(text, strlen(text), &o->gateway.place);
}

static bool parse_mtu(const char *text, unsigned *mtu)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	*mtu = (unsigned)v;
	return end != text && !*end && v >= VB_GW_MTU_LEAST &&
	       v <= VB_GW_PACKET;
}

/* Read the address of a router, of either family. */
static bool parse_router(const char *text, struct vb_gid router[2])
{
	char with_prefix[64];
	struct vb_ip_net a;
	int n = snprintf(with_prefix, sizeof(with_prefix), "%s/%u", text,
			 strchr(text, ':') ? 128 : 32);

	if (n >= (int)sizeof(with_prefix) || !vb_ip_net_parse(with_prefix, &a))
		return false;
	router[!vb_gid_is_ipv4(&a.ip)] = a.ip;
	return true;
}

static bool parse_addresses(int argc, char **argv, struct options *o)
{
	for (int i = optind; i < argc; i++) {
		if (o->count == VB_IP_NETS ||
		    !vb_ip_net_parse(argv[i], &o->addresses[o->count])) {
			fprintf(stderr,
				"%s: %s: not an address with the length of its "
				"prefix, such as 10.9.0.3/24\n",
				command, argv[i]);
			return false;
		}
		o->count++;
	}
	return true;
}

/* Connected mode is for IPoIB only: a gateway and an Ethernet interface have
 * datagrams only. */
static bool check_mode(const struct options *o)
{
	if (!o->connected || o->kind == &iface_ip)
		return true;
	fprintf(stderr, "%s: connected mode is for interfaces of IPoIB only\n",
		command);
	return false;
}

static bool parse_option(int c, struct options *o)
{
	switch (c) {
	case 'n':
		o->name = optarg;
		return true;
	case 'd':
		o->daemon = true;
		return true;
	case 'e':
		return parse_network(optarg, o);
	case 'g':
	case 'l':
		return parse_switch(optarg, c == 'l', o);
	case 'o':
		o->gateway.port = optarg;
		return true;
	case 'm':
		return parse_mtu(optarg, &o->gateway.mtu);
	case 'r':
		return parse_router(optarg, o->gateway.router);
	case 'p':
		return parse_pkey(optarg, &o->pkey);
	case 'c':
		return parse_mode(optarg, &o->connected);
	default:
		return false;
	}
}

static bool parse_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "ethernet", required_argument, NULL, 'e' },
		{ "gateway", required_argument, NULL, 'g' },
		{ "plug", required_argument, NULL, 'l' },
		{ "port", required_argument, NULL, 'o' },
		{ "mtu", required_argument, NULL, 'm' },
		{ "router", required_argument, NULL, 'r' },
		{ "name", required_argument, NULL, 'n' },
		{ "pkey", required_argument, NULL, 'p' },
		{ "mode", required_argument, NULL, 'c' },
		{ "daemon", no_argument, NULL, 'd' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!parse_option(c, o))
			return false;
	return !o->name || (o->name[0] && strlen(o->name) < IFNAMSIZ);
}

/* --- messages to the user --- */

static void VB_PRINTF(2, 3) say(const char *name, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: %s: ", command, name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

static int say_refused(const char *name, const char *what, int rc)
{
	if (rc == -EPERM)
		say(name,
		    "a network interface needs CAP_NET_ADMIN in its network "
		    "namespace: run this as root, or in a namespace of your "
		    "own (unshare -Urn)");
	else if (rc == -ENOENT && strcmp(what, "the network interface") == 0)
		say(name, "there is no /dev/net/tun here");
	else if (rc == -EBUSY)
		say(name, "there is such an interface already; choose another "
			  "name with --name");
	else
		say(name, "cannot open %s: %s", what, strerror(-rc));
	return EXIT_FAILURE;
}

static void say_what_is_missing(const struct iface *f)
{
	if (!f->port.active)
		say(f->tun.name, "waiting for a subnet manager to make the "
				 "port active");
	else if (f->port.pkey_index < 0)
		say(f->tun.name,
		    "waiting for the P_Key 0x%04x, which the subnet manager "
		    "has not given to this port",
		    f->pkey);
	else
		say(f->tun.name,
		    "waiting for the subnet manager to let this port into "
		    "IPoIB's broadcast group of P_Key 0x%04x",
		    f->pkey);
}

static void say_ready(const struct iface *f)
{
	char gid[VB_GID_TEXT];

	printf("%s: MTU %u, P_Key 0x%04x, QPN 0x%06x, GID %s\n", f->tun.name,
	       f->mtu, f->pkey, f->port.qp->qp_num,
	       vb_gid_text(&f->port.gid, gid));
	fflush(stdout);
}

/* --- the loop --- */

static int open_stop_signals(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &ends, NULL) < 0)
		return -1;
	return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int timeout_of(vb_time due, vb_time now)
{
	if (due == VB_NEVER)
		return -1;
	return due <= now ? 0
			  : (int)VB_MIN((due - now + VB_MSEC - 1) / VB_MSEC,
					60000u);
}

/* The TUN is not watched while no buffer is free for a frame from it. */
static unsigned fill_polls(const struct iface *f, int stop,
			   struct pollfd fds[SOURCES + LOOKUP_FDS])
{
	const int list[SOURCES] = {
		[TUN] = iface_has_room(f) ? f->tun.fd : -1,
		[CHANNEL] = f->port.channel->fd,
		[EVENTS] = f->port.context->async_fd,
		[SA] = f->port.umad,
		[CM] = f->cm.channel ? f->cm.channel->fd : -1,
		[ASKED] = f->cm.asker ? ipoib_asker_fd(f->cm.asker) : -1,
		[NETLINK] = f->tun.netlink,
		[STOP] = stop,
	};

	for (unsigned i = 0; i < SOURCES; i++)
		fds[i] = (struct pollfd){ .fd = list[i], .events = POLLIN };
	return SOURCES + lookup_poll(&f->lookup, fds + SOURCES);
}

static void serve_sources(struct iface *f, const struct pollfd *fds,
			  unsigned count, bool *more)
{
	if (fds[EVENTS].revents)
		iface_from_events(f);
	if (fds[SA].revents)
		iface_from_sa(f);
	if (fds[CM].revents || fds[ASKED].revents)
		iface_from_cm(f);
	if (fds[NETLINK].revents)
		iface_from_netlink(f);
	if (fds[CHANNEL].revents || *more)
		*more = iface_from_fabric(f);
	if (fds[TUN].revents)
		iface_from_tun(f);
	lookup_serve(&f->lookup, fds + SOURCES, count - SOURCES);
}

/* Returns the reason why the process must end, or NULL: poll() reports the end
 * of a connection again and again, so the process would never sleep. */
static const char *lost_source(const struct iface *f, const struct pollfd *fds)
{
	if (fds[SA].revents & (POLLHUP | POLLERR))
		return "the fabric has ended";
	if (fds[TUN].revents & (POLLERR | POLLHUP))
		return f->kind == &iface_gateway
			       ? "its Ethernet port was detached"
			       : "the interface was removed";
	return NULL;
}

static int fail(const struct iface *f)
{
	say(f->tun.name, "%s", f->failure);
	return EXIT_FAILURE;
}

/* Print once that the interface is up, or what it waits for. Returns the time
 * at which to call this again. */
static vb_time report(const struct iface *f, vb_time *late, int *ready)
{
	if (f->mtu && *late) {
		*late = 0;
		say_ready(f);
		if (*ready >= 0)
			background_ready(*ready);
		*ready = -1;
	} else if (*late && f->now >= *late) {
		say_what_is_missing(f);
		*late = VB_NEVER;
	}
	return *late ? *late : VB_NEVER;
}

static int serve(struct iface *f, int stop, int ready)
{
	struct pollfd fds[SOURCES + LOOKUP_FDS];
	vb_time late = vb_clock_read() + PATIENCE, due;
	bool more = false;

	for (;;) {
		unsigned count;

		f->now = vb_clock_read();
		due = iface_tick(f);
		due = VB_MIN(due, report(f, &late, &ready));
		if (f->failure)
			return fail(f);
		count = fill_polls(f, stop, fds);
		if (poll(fds, count, more ? 0 : timeout_of(due, f->now)) < 0 &&
		    errno != EINTR)
			return EXIT_FAILURE;
		if (fds[STOP].revents)
			return EXIT_SUCCESS;
		f->now = vb_clock_read();
		f->failure = lost_source(f, fds);
		if (f->failure)
			return fail(f);
		serve_sources(f, fds, count, &more);
	}
}

/* Choose the interface's name: ib0 or eib0, with the P_Key unless that is the
 * default one. */
static void choose_name(const struct options *o, char name[IFNAMSIZ])
{
	const char *kind = o->kind == &iface_ip	   ? "ib0"
			   : o->kind == &iface_eth ? "eib0"
						   : "gateway";

	if (o->name)
		snprintf(name, IFNAMSIZ, "%s", o->name);
	else if (o->pkey == DEFAULT_PKEY)
		snprintf(name, IFNAMSIZ, "%s", kind);
	else
		snprintf(name, IFNAMSIZ, "%s.%04x", kind, o->pkey);
}

int main(int argc, char **argv)
{
	static struct options o = { .kind = &iface_ip,
				    .pkey = DEFAULT_PKEY,
				    .gateway = { .port = "", .mtu = 1500 } };
	static struct iface f;
	char name[IFNAMSIZ];
	const char *what;
	int stop, ready = -1, rc;

	if (!parse_options(argc, argv, &o))
		return usage();
	if (!check_mode(&o) || !parse_addresses(argc, argv, &o))
		return USAGE;
	if (o.plug)
		return ether_plug(&o.gateway, o.name, o.addresses, o.count);
	choose_name(&o, name);
	if (o.daemon) {
		ready = background_fork();
		if (ready < 0)
			return say_refused(name, "a second process", ready);
	}
	/* Block the signals before the first thread begins, so that all threads
	 * inherit the signal mask. */
	stop = open_stop_signals();
	f.pkey = o.pkey;
	f.kind = o.kind;
	f.network = o.network;
	f.connected = o.connected;
	f.gateway = o.gateway;
	f.wanted = o.addresses;
	f.wanted_count = o.count;
	rc = iface_open(&f, name, &what);
	if (f.failure)
		rc = fail(&f);
	else if (rc || stop < 0)
		rc = say_refused(name, what, rc);
	else
		rc = serve(&f, stop, ready);
	iface_close(&f);
	return rc;
}

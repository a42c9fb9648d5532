/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena doctor`: devices, addresses, MTU, and packets from an address of
 * this host to itself. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/doctor.h"
#include "cli/finding.h"
#include "engine/probe.h"

#define ROCE_PORT	4791
#define ECHO_PATIENCE	(300 * VB_MSEC)
#define ECHO_TRIES	3
#define SMALL_ECHO	32
#define MTU_BYTES(code) (128u << (code))
#define LEAST_USEFUL_BYTES                                                     \
	1120 /* an interface's MTU for a path MTU of 1024                      \
	      */

static void say_device(const struct vb_cli_port *p)
{
	int best = vb_cli_best_gid(&p->port);
	char gid[VB_GID_TEXT];

	if (p->device.kind == DEVICE_IWARP) {
		vb_finding_add("device", FINDING_OK, NULL,
			       "%s, port %s: iWARP; programs connect by "
			       "librdmacm (perftest: -R)",
			       p->device.name,
			       p->port.state == PORT_ACTIVE ? "active"
							    : "down");
		return;
	}
	if (p->port.state != PORT_ACTIVE) {
		vb_finding_add("device", FINDING_PROBLEM,
			       vb_finding_text("sudo ip link set %s up",
					       vb_finding_quoted(p->at.netdev)),
			       "%s: its interface %s is down", p->device.name,
			       p->at.netdev);
		return;
	}
	if (best < 0)
		return;
	vb_finding_add("device", FINDING_OK, NULL,
		       "%s: active, MTU %u (path MTU %u), %s has GID index %d: "
		       "give -g %d to ibv_*_pingpong, -x %d to perftest",
		       p->device.name, p->port.netdev_mtu,
		       MTU_BYTES(p->port.active_mtu),
		       vb_cli_address_text(&p->port.gids[best].gid, gid), best,
		       best, best);
	if (vb_gid_is_link_local(&p->port.gids[best].gid))
		vb_finding_add("address", FINDING_WARNING,
			       vb_finding_text("sudo ip address add "
					       "ADDRESS/LENGTH dev %s",
					       vb_finding_quoted(p->at.netdev)),
			       "%s has link-local addresses only; librdmacm "
			       "wants others",
			       p->at.netdev);
	if (p->port.netdev_mtu < LEAST_USEFUL_BYTES)
		vb_finding_add("mtu", FINDING_WARNING,
			       vb_finding_text("sudo ip link set %s mtu 1500",
					       vb_finding_quoted(p->at.netdev)),
			       "%s has an MTU of %u, so a packet carries %u "
			       "bytes at most",
			       p->at.netdev, p->port.netdev_mtu,
			       MTU_BYTES(p->port.active_mtu));
}

void vb_doctor_devices(const struct vb_cli_ports *p)
{
	if (p->count == 0)
		vb_finding_add("device", FINDING_PROBLEM,
			       "sudo ip link set lo up",
			       "no device: no network interface is up and has "
			       "an IP address");
	for (unsigned i = 0; i < p->count; i++)
		say_device(p->ports[i]);
}

/* Sends a datagram from an address of this host to itself: an output rule that
 * drops it lets the call fail. Returns 0 or an errno. */
static int try_output(const struct vb_gid *gid)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(ROCE_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), rc = 0;

	if (fd < 0)
		return 0;
	memcpy(&to.sin_addr, gid->raw + 12, 4);
	if (sendto(fd, "", 0, MSG_DONTWAIT, (struct sockaddr *)&to,
		   sizeof(to)) < 0)
		rc = errno;
	close(fd);
	return rc;
}

/* Ask this host's own broker for an echo. */
static bool own_echo(struct vb_probe *probe, const struct vb_gid *gid,
		     uint32_t ifindex)
{
	struct vb_probe_answer a;

	for (uint32_t i = 0; i < ECHO_TRIES; i++) {
		vb_time until = vb_clock_read() + ECHO_PATIENCE;

		if (vb_probe_ask(probe, gid, gid, ifindex, i, SMALL_ECHO,
				 SMALL_ECHO))
			return false;
		while (vb_probe_hear(probe, until, &a))
			if (!a.error)
				return true;
	}
	return false;
}

static void probe_own(struct vb_probe *probe, const struct vb_cli_port *p)
{
	int best = vb_cli_best_gid(&p->port);
	const struct vb_gid *gid;
	char text[VB_GID_TEXT];

	if (best < 0 || p->device.kind == DEVICE_IWARP ||
	    p->port.state != PORT_ACTIVE)
		return;
	gid = &p->port.gids[best].gid;
	vb_cli_address_text(gid, text);
	if (vb_gid_is_ipv4(gid) && try_output(gid) == EPERM)
		vb_finding_add("firewall", FINDING_PROBLEM,
			       "sudo nft list ruleset",
			       "the firewall of this host stops packets to UDP "
			       "port 4791 as they leave (%s)",
			       text);
	else if (own_echo(probe, gid, p->port.ifindex))
		vb_finding_add("echo", FINDING_OK, NULL,
			       "packets from %s to itself arrive (%s)", text,
			       p->device.name);
	else
		vb_finding_add("echo", FINDING_PROBLEM, "sudo nft list ruleset",
			       "packets from %s to its own UDP port 4791 do "
			       "not arrive: a firewall drops them, or the "
			       "interface lo is down",
			       text);
}

static void say_no_probe(int rc)
{
	vb_finding_add("slot", FINDING_PROBLEM,
		       "VERBENA_LOG=warn verbena "
		       "doctor",
		       "no program can use a RoCE device here: %s",
		       rc == -EADDRINUSE ? "another program has UDP port 4791"
					 : strerror(-rc));
}

void vb_doctor_firewall(const struct vb_cli_ports *p)
{
	struct vb_probe *probe;
	int rc;

	vb_doctor_rules();
	rc = vb_probe_open(&probe);
	if (rc) {
		say_no_probe(rc);
		return;
	}
	for (unsigned i = 0; i < p->count; i++)
		probe_own(probe, p->ports[i]);
	vb_probe_close(probe);
}

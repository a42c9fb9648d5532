/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena ether`: attaches a TAP interface of this host to an Ethernet port of
 * a fabric's switch. The process of the fabric keeps the interface after this
 * command has ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipoib/cable.h"
#include "ipoib/iface.h"

#define DEFAULT_NAME "eth%d" /* the kernel chooses the number */

static int refuse_ether(const char *name, const char *why)
{
	fprintf(stderr, "verbena ether: %s: %s\n", name, why);
	return EXIT_FAILURE;
}

static const char *word_of(int rc)
{
	if (rc == -EPERM)
		return "a network interface needs CAP_NET_ADMIN in its network "
		       "namespace: run this as root, or in a namespace of your "
		       "own (unshare -Urn)";
	if (rc == -ENOENT)
		return "there is no /dev/net/tun here";
	if (rc == -EBUSY)
		return "there is such an interface already; choose another "
		       "name with --name";
	return strerror(-rc);
}

static int bring_up_ether(struct tun *t, unsigned mtu,
			  const struct vb_ip_net *a, unsigned count)
{
	int rc = tun_up(t, mtu, NULL);

	for (unsigned i = 0; i < count && !rc; i++)
		rc = tun_add_address(t, &a[i]);
	return rc;
}

int ether_plug(const struct iface_gateway_wish *w, const char *name,
	       const struct vb_ip_net *a, unsigned count)
{
	char said[CABLE_TEXT];
	struct tun t;
	int rc;

	name = name ? name : DEFAULT_NAME;
	rc = tun_open(&t, name, true);
	if (rc)
		return refuse_ether(name, word_of(rc));
	rc = bring_up_ether(&t, w->mtu, a, count);
	if (rc)
		rc = refuse_ether(t.name, word_of(rc));
	else if (cable_plug(&w->place, w->port, t.fd, t.name, said))
		rc = refuse_ether(t.name, said);
	else
		printf("%s: %s of %s, MTU %u\n", t.name, said, w->place.node,
		       w->mtu);
	tun_close(&t);
	return rc;
}

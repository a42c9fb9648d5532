/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fabricd/topology.h"

static char path[64], error[VB_TOPO_ERROR];

/* Read a topology from the text. */
static int read_text(struct vb_topo *t, const char *text)
{
	FILE *f;

	memset(t, 0, sizeof(*t));
	error[0] = '\0';
	snprintf(path, sizeof(path), "/tmp/topo_test.%d", (int)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return vb_topo_read(t, path, error);
}

static void says(const char *text, const char *why)
{
	struct vb_topo t;
	char want[VB_TOPO_ERROR];

	assert_int_equal(read_text(&t, text), -EINVAL);
	snprintf(want, sizeof(want), "%s:%s", path, why);
	assert_string_equal(error, want);
	vb_topo_free(&t);
}

static const char pair[] = "# two hosts\n"
			   "Switch\t8 \"Switch1\"\n"
			   "[1]\t\"Hca1\"[1]\n"
			   "[4]\t\"Hca2\"[1] w=12 s=2\n"
			   "\n"
			   "Hca\t2 \"Hca1\"\n"
			   "[1]\t\"Switch1\"[1]\n"
			   "\n"
			   "Hca 2 \"Hca2\"\n"
			   "[1] \"Switch1\"[4]\n";

static void read__nodes_and_links(void **state)
{
	const struct vb_topo_node *sw, *hca;
	struct vb_topo t;

	assert_int_equal(read_text(&t, pair), 0);
	assert_int_equal(t.count, 3);
	sw = vb_topo_find(&t, "Switch1");
	hca = vb_topo_find(&t, "Hca2");
	assert_int_equal(sw->kind, FAB_SWITCH);
	assert_int_equal(sw->ports, 8);
	assert_int_equal(hca->kind, FAB_CA);
	assert_true(sw->port[4].linked);
	assert_ptr_equal(&t.nodes[sw->port[4].peer], hca);
	assert_int_equal(sw->port[4].peer_port, 1);
	assert_int_equal(sw->port[4].width, FAB_1X | FAB_4X | FAB_12X);
	assert_int_equal(sw->port[4].speed, FAB_SDR | FAB_DDR);
	assert_ptr_equal(&t.nodes[hca->port[1].peer], sw);
	assert_false(sw->port[2].linked);
	assert_false(hca->port[2].linked);
	assert_int_not_equal(sw->guid, hca->guid);
	assert_null(vb_topo_find(&t, "Hca3"));
	vb_topo_free(&t);
}

/* Read a file as ibnetdiscover prints it for a real cluster. */
static void read__a_clusters_file(void **state)
{
	static const char text[] =
		"#\n# Topology file: generated on Mon Jan 1\n#\n"
		"# Initiated from node 0002c90300001000\n\n"
		"Chassis 1 (guid 0x8f10400411f56)\n"
		"vendid=0x2c9\ndevid=0xb924\nsysimgguid=0xb8cffffff\n"
		"switchguid=0xb8cffffff004b(b8cffffff004b)\n"
		"Switch\t24 \"S-000b8cffffff004b\"\t\t# \"MT47396 Infiniscale\" "
		"enhanced port 0 lid 3 lmc 0\n"
		"[6]\t\"H-0002c90300001000\"[1](2c90300001001) \t\t# \"node1 "
		"mlx4_0\" lid 6 4xQDR\n"
		"\n"
		"vendid=0x2c9\ndevid=0x673c\nsysimgguid=0x2c90300001003\n"
		"caguid=0x2c90300001000\n"
		"Ca\t2 \"H-0002c90300001000\"\t\t# \"node1 mlx4_0\"\n"
		"[1](2c90300001001) \t\"S-000b8cffffff004b\"[6]\t\t# lid 6 lmc "
		"0 \"MT47396 Infiniscale\" lid 3 4xQDR\n";
	const struct vb_topo_node *sw, *ca;
	struct vb_topo t;

	assert_int_equal(read_text(&t, text), 0);
	assert_int_equal(t.count, 2);
	sw = vb_topo_find(&t, "MT47396 Infiniscale");
	ca = vb_topo_find(&t, "H-0002c90300001000");
	assert_int_equal(sw->guid, 0xb8cffffff004b);
	assert_int_equal(sw->vendor_id, 0x2c9);
	assert_int_equal(sw->device_id, 0xb924);
	assert_int_equal(ca->guid, 0x2c90300001000);
	assert_int_equal(ca->sys_guid, 0x2c90300001003);
	assert_string_equal(ca->desc, "node1 mlx4_0");
	assert_int_equal(ca->port[1].guid, 0x2c90300001001);
	assert_int_equal(ca->port[1].width, FAB_1X | FAB_4X);
	assert_int_equal(ca->port[1].speed, FAB_SDR | FAB_DDR | FAB_QDR);
	vb_topo_free(&t);
}

static void read__parameters_of_links(void **state)
{
	char text[1024];
	const struct vb_topo_port *p;
	struct vb_topo t;

	snprintf(text, sizeof(text),
		 "#! link \"Hca2\"[1] delay=50us rate=8G buf=4096 credits=ext "
		 "lose=1 corrupt=0.5 width=1x\n%s",
		 pair);
	assert_int_equal(read_text(&t, text), 0);
	/* the port at the other end of the same link has equal properties */
	p = &vb_topo_find(&t, "Switch1")->port[4];
	assert_int_equal(p->spec.delay, 50 * VB_USEC);
	assert_int_equal(p->spec.bytes_per_sec, 1000000000);
	assert_int_equal(p->spec.buffer, 4096);
	assert_true(p->spec.extended);
	assert_int_equal(p->spec.lose, UINT32_MAX);
	assert_in_range(p->spec.corrupt, 0x7ffffffe, 0x80000000);
	/* This port's line says 12xDDR: the port keeps the speed DDR. */
	assert_int_equal(p->width, FAB_1X);
	assert_int_equal(p->speed, FAB_SDR | FAB_DDR);
	/* The line of the port at the other end says no speed. */
	p = &vb_topo_find(&t, "Hca2")->port[1];
	assert_int_equal(p->width, FAB_1X);
	assert_int_equal(p->speed, FAB_SDR | FAB_DDR | FAB_QDR);
	vb_topo_free(&t);

	snprintf(text, sizeof(text),
		 "#! link \"Hca2\"[1] speed=EDR delay=1us\n%s", pair);
	assert_int_equal(read_text(&t, text), 0);
	p = &vb_topo_find(&t, "Hca2")->port[1];
	assert_int_equal(p->width, FAB_1X | FAB_4X);
	assert_int_equal(p->speed_ext, FAB_FDR | FAB_EDR);
	assert_int_equal(p->spec.delay, VB_USEC);
	vb_topo_free(&t);
	says("Hca 1 \"A\"\n#! link \"A\"[1] width=3x\n",
	     "2: \"width=3x\": width is 1x, 2x, 4x, 8x or 12x, speed is SDR, "
	     "DDR, QDR, FDR10, FDR, EDR, HDR or NDR");
	says("Hca 1 \"A\"\n#! link \"A\"[1] speed=\n",
	     "2: \"speed=\": width is 1x, 2x, 4x, 8x or 12x, speed is SDR, "
	     "DDR, QDR, FDR10, FDR, EDR, HDR or NDR");
}

static void read__parameters_of_nodes(void **state)
{
	char text[1024];
	const struct vb_topo_node *sw, *hca;
	struct vb_topo t;

	snprintf(
		text, sizeof(text),
		"#! node \"Switch1\" mtu=2048 vls=4 linear=100 mcast=16 "
		"latency=1us forward=store ethernet=4 adaptive=on\n#! node \"Hca2\" pkeys=64 "
		"mtu=256\n%s",
		pair);
	assert_int_equal(read_text(&t, text), 0);
	sw = vb_topo_find(&t, "Switch1");
	assert_int_equal(sw->spec.mtu_cap, 4);
	assert_int_equal(sw->spec.vl_cap, 3);
	assert_int_equal(sw->spec.linear_cap, 100);
	assert_int_equal(sw->spec.mcast_cap, 16);
	assert_int_equal(sw->spec.latency_ns, 1000);
	assert_true(sw->spec.store_and_forward);
	assert_int_equal(sw->spec.ethernet, 4);
	assert_true(sw->spec.adaptive);
	hca = vb_topo_find(&t, "Hca2");
	assert_int_equal(hca->spec.pkeys, 64);
	assert_int_equal(hca->spec.mtu_cap, 1);
	assert_int_equal(vb_topo_find(&t, "Hca1")->spec.pkeys, 0);
	vb_topo_free(&t);
	says("Hca 1 \"A\"\n#! node \"A\" linear=5\n",
	     "2: \"linear=5\": only switches have linear");
	says("Hca 1 \"A\"\n#! node \"A\" mtu=1000\n",
	     "2: \"mtu=1000\": mtu is 256, 512, 1024, 2048 or 4096");
	says("Hca 1 \"A\"\n#! node \"A\" pkeys=0\n",
	     "2: \"pkeys=0\": pkeys is 1 to 65535 entries");
	says("Hca 1 \"A\"\n#! node \"B\" pkeys=1\n",
	     "2: there is no node \"B\"");
	says("Hca 1 \"A\"\n#! node mtu=256\n",
	     "2: the node is missing: \"NODE\"");
	says("Hca 1 \"A\"\n#! node \"A\" speed=1\n",
	     "2: \"speed=1\" is no parameter of a node: mtu, vls, pkeys, "
	     "linear, random, mcast, latency, forward, ethernet, adaptive, "
	     "target, service and route are");
	says("Hca 1 \"A\"\n#! node \"A\" ethernet=1\n",
	     "2: \"ethernet=1\": only switches have ethernet");
	says("Switch 1 \"A\"\n#! node \"A\" ethernet=33\n",
	     "2: \"ethernet=33\": ethernet is 1 to 32 ports");
	says("Hca 1 \"A\"\n#! node \"A\" adaptive=on\n",
	     "2: \"adaptive=on\": only switches have adaptive");
	says("Switch 1 \"A\"\n#! node \"A\" adaptive=yes\n",
	     "2: \"adaptive=yes\": adaptive is on or off");
	says("Switch 1 \"A\"\n#! node \"A\" adaptive=on random=5\n",
	     "2: adaptive=on: the switch has no linear table, only random=");
}

static void read__targets(void **state)
{
	char text[1024];
	const struct vb_iou_unit *u;
	struct vb_topo t;

	snprintf(text, sizeof(text),
		 "#! node \"Hca2\" target=3 service=2:SRP.T10:00ff:0x1f "
		 "service=2:a:7\n#! node \"Hca2\" service=3:b:10 "
		 "service=2:a:8\n%s",
		 pair);
	assert_int_equal(read_text(&t, text), 0);
	assert_null(vb_topo_find(&t, "Hca1")->spec.unit);
	u = vb_topo_find(&t, "Hca2")->spec.unit;
	assert_int_equal(u->controllers, 3);
	assert_int_equal(u->entries, 3);
	assert_int_equal(u->entry[0].slot, 2);
	assert_string_equal(u->entry[0].service.name, "SRP.T10:00ff");
	assert_int_equal(u->entry[0].service.id, 0x1f);
	/* a second service of this name at the controller replaces the ID of
	 * the first */
	assert_string_equal(u->entry[1].service.name, "a");
	assert_int_equal(u->entry[1].service.id, 8);
	assert_int_equal(u->entry[2].slot, 3);
	vb_topo_free(&t);
	says("Switch 1 \"A\"\n#! node \"A\" target=1\n",
	     "2: \"target=1\": only adapters have target");
	says("Hca 1 \"A\"\n#! node \"A\" target=17\n",
	     "2: \"target=17\": target is 0 to 16 I/O controllers");
	says("Hca 1 \"A\"\n#! node \"A\" target=1.5\n",
	     "2: \"target=1.5\": target is 0 to 16 I/O controllers");
}

#define SERVICE_IS                                                             \
	"SLOT:NAME:ID, with a controller that target= gives before it, a "     \
	"name of 1 to 39 characters, and a number; a node has 64 at most"

static void read__bad_services(void **state)
{
	static const char *const bad[] = {
		"service=1:a",
		"service=1::5",
		"service=:a:5",
		"service=0:a:5",
		"service=3:a:5",
		"service=1:a:",
		"service=1:a:5x",
		"service=1:a:-5",
		"service=x:a:5",
		"service=",
		"service=-1:a:5",
		"service=1:\"a:5",
		"service=1:a:99999999999999999999",
		"service=1:1234567890123456789012345678901234567890:5",
	};
	char text[256], wanted[512];

	for (unsigned i = 0; i < VB_COUNT(bad); i++) {
		snprintf(text, sizeof(text),
			 "Hca 1 \"A\"\n#! node \"A\" target=2 %s\n", bad[i]);
		snprintf(wanted, sizeof(wanted),
			 "2: \"%s\": service is " SERVICE_IS, bad[i]);
		says(text, wanted);
	}
	/* a service is refused whose controller is given only later, by
	 * target= */
	says("Hca 1 \"A\"\n#! node \"A\" service=1:a:5 target=1\n",
	     "2: \"service=1:a:5\": service is " SERVICE_IS);
}

/* If a running adapter loses controllers, their services are lost with them. */
static void node_spec__target_shrinks(void **state)
{
	struct vb_topo_spec s = { 0 }, copy;

	assert_int_equal(
		vb_topo_node_spec("target=3 service=1:a:1 service=3:c:3 "
				  "service=2:b:2",
				  FAB_CA, true, &s, error),
		0);
	assert_int_equal(vb_topo_spec_copy(&s, &copy), 0);
	assert_int_equal(
		vb_topo_node_spec("target=2", FAB_CA, true, &copy, error), 0);
	assert_int_equal(copy.unit->entries, 2);
	assert_string_equal(copy.unit->entry[1].service.name, "b");
	assert_int_equal(s.unit->entries, 3);
	for (unsigned i = 0; i < VB_IOU_SERVICES - 2; i++) {
		char text[64];

		snprintf(text, sizeof(text), "service=1:more%u:0", i);
		assert_int_equal(
			vb_topo_node_spec(text, FAB_CA, true, &copy, error), 0);
	}
	assert_int_equal(vb_topo_node_spec("service=1:onemore:0", FAB_CA, true,
					   &copy, error),
			 -EINVAL);
	assert_int_equal(
		vb_topo_node_spec("pkeys=5", FAB_CA, true, &copy, error),
		-EINVAL);
	assert_non_null(strstr(error, "target, service and route change"));
	vb_topo_spec_free(&s);
	vb_topo_spec_free(&copy);
}

static void add__last_node_can_go_again(void **state)
{
	uint32_t index;
	struct vb_topo t;

	assert_int_equal(read_text(&t, pair), 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(
			vb_topo_add(&t, FAB_CA, 1, "Late", &index, error), 0);
		assert_int_equal(index, 3);
		vb_topo_drop(&t);
		assert_null(vb_topo_find(&t, "Late"));
		assert_non_null(vb_topo_find(&t, "Hca2"));
	}
	assert_int_equal(t.count, 3);
	vb_topo_free(&t);
}

static void read__errors_name_line_and_cause(void **state)
{
	says("Switch 8 \"A\"\n[1] \"B\"[1]\n", "2: there is no node \"B\"");
	says("Switch 8 \"A\"\n[9] \"A\"[1]\n",
	     "2: the port's number is not in 1 to 8, which \"A\" has");
	says("Switch 8 \"A\"\n[1] \"A\"[9]\n",
	     "2: \"A\" has no port 9: it has 8");
	says("Switch 8 \"A\"\n[1] \"A\"[1]\n", "2: port 1 is linked to itself");
	says("Switch 8 \"A\"\n[1] \"A\"\n",
	     "2: the peer of port 1 is missing: \"ID\"[PORT]");
	says("[1] \"A\"[1]\n", "1: a port stands before any node");
	says("Switch 300 \"A\"\n",
	     "1: the number of ports is missing, or not in 1 to 254");
	says("Switch 8 A\n", "1: the node's id is missing: 1 to 64 characters "
			     "in quotes");
	says("Switch 8 \"A\"\n\nHca 1 \"A\"\n", "3: there are two nodes \"A\"");
	says("Switch 8 \"A\"\n[1] \"A\"[2]\n[1] \"A\"[3]\n",
	     "3: port 1 of \"A\" has a peer in line 2 already");
	says("Switch 8 \"A\"\n[1] \"A\"[2]\n[3] \"A\"[2]\n",
	     "3: port 2 of \"A\" is linked to port 1 of \"A\" already");
	says("Bridge 8 \"A\"\n",
	     "1: \"Bridge\" begins no line of a topology: Switch, Ca, Hca, Rt, "
	     "[PORT], NAME=VALUE and include do");
	says("Switch 8 \"A\"\n#! link \"A\"[1] delay=1us\n",
	     "2: \"A\" has no link at port 1");
	says("Switch 8 \"A\"\n#! link \"A\"[1] delay=1\n",
	     "2: \"delay=1\": delay is a time of at most 10 s: 500ns, 50us, "
	     "1ms");
	says("#! line\n", "1: \"#!\" begins a line for Verbena: #! link "
			  "\"NODE\"[PORT] PARAMETER=VALUE..., or #! node "
			  "\"NODE\" PARAMETER=VALUE...");
	says("# empty\n", "1: there is no node");
	says("Switch 2 \"S-1\"\n\nCa 2 \"H-1\"\n",
	     "3: the nodes \"S-1\" and \"H-1\" have the same GUID 0x1");
	says("include nothing\n",
	     "1: include: cannot read /tmp/nothing: No such file or directory");
}

static void read__an_absent_file(void **state)
{
	struct vb_topo t = { 0 };

	assert_int_equal(vb_topo_read(&t, "/nowhere/x", error), -ENOENT);
	assert_string_equal(error, "/nowhere/x: No such file or directory");
	vb_topo_free(&t);
}

static void read__a_file_that_includes_itself(void **state)
{
	char text[128];
	struct vb_topo t;

	snprintf(path, sizeof(path), "/tmp/topo_test.%d", (int)getpid());
	snprintf(text, sizeof(text), "include %s\n", path);
	assert_int_equal(read_text(&t, text), -EINVAL);
	assert_non_null(strstr(error, "more than 8 files deep"));
	vb_topo_free(&t);
}

static unsigned count_links(const struct vb_topo *t)
{
	unsigned links = 0;

	for (uint32_t i = 0; i < t->count; i++)
		for (unsigned p = 1; p <= t->nodes[i].ports; p++) {
			const struct vb_topo_port *port = &t->nodes[i].port[p];

			if (!port->linked)
				continue;
			links++;
			assert_int_equal(
				t->nodes[port->peer].port[port->peer_port].peer,
				i);
			assert_int_equal(t->nodes[port->peer]
						 .port[port->peer_port]
						 .peer_port,
					 p);
		}
	return links / 2;
}

static void make__counts(void **state)
{
	static const struct {
		const char *spec;
		unsigned nodes, links;
	} cases[] = {
		{ "switch:2", 3, 2 },
		{ "fat-tree:2:18x36", 324 + 27, 324 * 2 },
		{ "fat-tree:2:10x12", 60 + 15, 60 * 2 },
		{ "fat-tree:2:36x36", 648 + 54, 648 * 2 },
		{ "fat-tree:3:8x4", 16 + 8 + 8 + 4, 16 + 16 + 16 },
		{ "torus:4x4", 32, 16 + 32 },
		{ "torus:2x2", 8, 4 + 8 },
		{ "torus:3x4x5", 120, 60 + 180 },
		{ "dragonfly:4:2:2", 9 * 4 * 3, 72 + 9 * 6 + 36 },
	};

	for (unsigned i = 0; i < VB_COUNT(cases); i++) {
		struct vb_topo t = { 0 };

		assert_int_equal(vb_topo_make(&t, cases[i].spec, error), 0);
		assert_int_equal(t.count, cases[i].nodes);
		assert_int_equal(count_links(&t), cases[i].links);
		vb_topo_free(&t);
	}
}

static void make__refuses(void **state)
{
	static const char *const specs[] = {
		"",
		"mesh:4",
		"switch",
		"switch:0",
		"switch:255",
		"switch:2:3",
		"fat-tree:2:5x4",
		"fat-tree:4:2x4",
		"fat-tree:2:2x3",
		"torus:1x4",
		"torus:4",
		"torus:4x4x1",
		"dragonfly:0:1:1",
		"switch:-1",
		"switch:2 ",
		"fat-tree:2:99999999999x4",
	};

	for (unsigned i = 0; i < VB_COUNT(specs); i++) {
		struct vb_topo t = { 0 };

		assert_int_equal(vb_topo_make(&t, specs[i], error), -EINVAL);
		vb_topo_free(&t);
	}
}

static void assert_same_spec(const struct vb_topo_spec *a,
			     const struct vb_topo_spec *b)
{
	assert_int_equal(a->mtu_cap, b->mtu_cap);
	assert_int_equal(a->vl_cap, b->vl_cap);
	assert_int_equal(a->pkeys, b->pkeys);
	assert_int_equal(a->linear_cap, b->linear_cap);
	assert_int_equal(a->random_cap, b->random_cap);
	assert_int_equal(a->mcast_cap, b->mcast_cap);
	assert_int_equal(a->latency_ns, b->latency_ns);
	assert_int_equal(a->store_and_forward, b->store_and_forward);
	assert_int_equal(a->ethernet, b->ethernet);
	assert_int_equal(a->adaptive, b->adaptive);
}

/* A topology that was written, read and written again gives an equal text. */
static void write__round_trip(void **state)
{
	struct vb_topo a = { 0 }, b;
	const struct vb_iou_unit *unit;
	uint32_t router;
	char *first = NULL, *second = NULL;
	size_t len;
	FILE *f;

	assert_int_equal(vb_topo_make(&a, "torus:3x3", error), 0);
	a.nodes[0].port[1].spec.delay = 500;
	a.nodes[0].port[1].spec.bytes_per_sec = 1000000000;
	a.nodes[0].port[1].spec.lose = 12345;
	a.nodes[a.nodes[0].port[1].peer]
		.port[a.nodes[0].port[1].peer_port]
		.spec = a.nodes[0].port[1].spec;
	a.nodes[2].spec = (struct vb_topo_spec){ .mtu_cap = 4,
						 .vl_cap = 3,
						 .pkeys = 8,
						 .linear_cap = 64,
						 .latency_ns = 300,
						 .store_and_forward = true,
						 .adaptive = true };
	assert_int_equal(vb_topo_node_spec("target=2 service=2:SRP.T10:1:0xff "
					   "service=1:b:0",
					   FAB_CA, false,
					   &a.nodes[a.count - 1].spec, error),
			 0);
	assert_int_equal(
		vb_topo_add(&a, FAB_ROUTER, 2, "Router", &router, error), 0);
	assert_int_equal(vb_topo_finish(&a, error), 0);
	assert_int_equal(vb_topo_node_spec("route=0x5:2 route=any:1",
					   FAB_ROUTER, false,
					   &a.nodes[router].spec, error),
			 0);
	a.nodes[1].port[5].width = FAB_1X | FAB_4X;
	a.nodes[1].port[5].speed = FAB_SDR;
	f = open_memstream(&first, &len);
	assert_true(vb_topo_write(&a, f));
	fclose(f);
	assert_int_equal(read_text(&b, first), 0);
	assert_int_equal(b.nodes[0].port[1].spec.lose, 12345);
	assert_same_spec(&b.nodes[2].spec, &a.nodes[2].spec);
	unit = b.nodes[router - 1].spec.unit;
	assert_int_equal(unit->controllers, 2);
	assert_int_equal(unit->entries, 2);
	assert_string_equal(unit->entry[0].service.name, "SRP.T10:1");
	assert_int_equal(unit->entry[0].service.id, 0xff);
	assert_int_equal(b.nodes[router].spec.routes->count, 2);
	f = open_memstream(&second, &len);
	assert_true(vb_topo_write(&b, f));
	fclose(f);
	assert_string_equal(first, second);
	free(first);
	free(second);
	vb_topo_free(&a);
	vb_topo_free(&b);
}

static int remove_file(void **state)
{
	unlink(path);
	return 0;
}

static const char two[] = "Switch 4 \"A\"\n"
			  "[1] \"H\"[1]\n"
			  "[2] \"B\"[3]\n"
			  "Switch 4 \"B\"\n"
			  "[1] \"I\"[1]\n"
			  "Ca 1 \"H\"\n\nCa 1 \"I\"\n"
			  "#! link \"A\"[2] delay=1us udp=10.0.0.2:7471\n"
			  "#! link \"B\"[3] tcp=[fe80::1]:9 local=8 buf=99\n";

/* Without --part both ends are here; with it the link ends elsewhere. */
static void part__cuts_links(void **state)
{
	const char *const names[] = { "B", NULL };
	const struct vb_topo_port *p;
	struct vb_topo t;
	uint64_t guid;

	assert_int_equal(read_text(&t, two), 0);
	assert_true(vb_topo_find(&t, "A")->port[2].linked);
	guid = vb_topo_find(&t, "A")->guid;
	assert_int_equal(vb_topo_part(&t, names, error), 0);
	assert_int_equal(t.count, 2);
	assert_null(vb_topo_find(&t, "A"));
	assert_null(vb_topo_find(&t, "H"));
	assert_int_equal(vb_topo_find(&t, "I")->port[1].peer, 0);
	p = &vb_topo_find(&t, "B")->port[3];
	assert_false(p->linked);
	assert_int_equal(p->far->via, VIA_TCP);
	assert_string_equal(p->far->host, "fe80::1");
	assert_int_equal(p->far->port, 9);
	assert_int_equal(p->far->local, 8);
	assert_int_equal(p->far->peer_port, 2);
	assert_true(p->far->guid == guid);
	assert_int_equal(p->spec.buffer, 99);
	vb_topo_free(&t);
}

/* Reading what was written for a part gives the same part. */
static void part__round_trip(void **state)
{
	const char *const names[] = { "A", NULL };
	const struct vb_topo_far *a, *b;
	struct vb_topo t, u;
	char *text = NULL;
	size_t len;
	FILE *to;

	assert_int_equal(read_text(&t, two), 0);
	assert_int_equal(vb_topo_part(&t, names, error), 0);
	to = open_memstream(&text, &len);
	assert_true(vb_topo_write(&t, to));
	fclose(to);
	assert_int_equal(read_text(&u, text), 0);
	assert_int_equal(u.count, 2);
	a = t.nodes[0].port[2].far;
	b = u.nodes[0].port[2].far;
	assert_true(a->guid == b->guid);
	assert_string_equal(a->host, b->host);
	assert_int_equal(a->port, b->port);
	assert_int_equal(a->peer_port, b->peer_port);
	assert_int_equal(u.nodes[0].port[2].spec.delay, 1000);
	free(text);
	vb_topo_free(&t);
	vb_topo_free(&u);
}

static void part__refuses(void **state)
{
	const char *const absent[] = { "C", NULL }, *const h[] = { "H", NULL };
	struct vb_topo t;

	assert_int_equal(read_text(&t, two), 0);
	assert_int_equal(vb_topo_part(&t, absent, error), -EINVAL);
	assert_non_null(strstr(error, "no node \"C\""));
	vb_topo_free(&t);
	assert_int_equal(read_text(&t, two), 0);
	assert_int_equal(vb_topo_part(&t, h, error), -EINVAL);
	assert_non_null(strstr(error, "needs a line"));
	vb_topo_free(&t);
	says("Switch 4 \"A\"\n[1] \"B\"[1]\n"
	     "#! link \"A\"[1] udp=h:1\n",
	     "2: there is no node \"B\"; one in another process that no file "
	     "describes needs an id with its GUID, S-0002c90000000001, and a "
	     "port");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__nodes_and_links),
		cmocka_unit_test(read__a_clusters_file),
		cmocka_unit_test(read__parameters_of_links),
		cmocka_unit_test(read__parameters_of_nodes),
		cmocka_unit_test(read__targets),
		cmocka_unit_test(read__bad_services),
		cmocka_unit_test(node_spec__target_shrinks),
		cmocka_unit_test(add__last_node_can_go_again),
		cmocka_unit_test(read__errors_name_line_and_cause),
		cmocka_unit_test(read__an_absent_file),
		cmocka_unit_test(read__a_file_that_includes_itself),
		cmocka_unit_test(make__counts),
		cmocka_unit_test(make__refuses),
		cmocka_unit_test(write__round_trip),
		cmocka_unit_test(part__cuts_links),
		cmocka_unit_test(part__round_trip),
		cmocka_unit_test(part__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, remove_file);
}

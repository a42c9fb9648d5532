/* SPDX-License-Identifier: BSD-2-Clause */
/* Routers in topologies: the routes that a file gives them, the subnets that
 * they separate, and the routes between these. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include <errno.h>

#include "fabricd/subnets.h"

static char error[VB_TOPO_ERROR];

static char path[64];

static int read_text(struct vb_topo *t, const char *text)
{
	FILE *f;

	memset(t, 0, sizeof(*t));
	snprintf(path, sizeof(path), "/tmp/subnets_test.%d", (int)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return vb_topo_read(t, path, error);
}

static int remove_file(void **state)
{
	return unlink(path);
}

static void says(const char *text, const char *why)
{
	struct vb_topo t;

	assert_int_equal(read_text(&t, text), -EINVAL);
	assert_string_equal(error + strlen(path) + 1, why);
	vb_topo_free(&t);
}

/* Three subnets in a row; the second router does not know the first subnet. */
static const char row[] = "Switch 3 \"A\"\n[1] \"Ha\"[1]\n[2] \"R\"[1]\n"
			  "Switch 4 \"B\"\n[1] \"Hb\"[1]\n[2] \"R\"[2]\n"
			  "[3] \"Q\"[1]\n"
			  "Switch 2 \"B2\"\n[1] \"Hb2\"[1]\n"
			  "Hca 1 \"Ha\"\n\nHca 1 \"Hb\"\n\n"
			  "Hca 2 \"Hb2\"\n[2] \"B\"[4]\n\n"
			  "Hca 1 \"C\"\n[1] \"Q\"[2]\n\n"
			  "rtguid=0x700\nRt 2 \"R\"\n\n"
			  "rtguid=0x800\nRt 2 \"Q\"\n\n";

static void routes_are(const struct vb_subnets *s, unsigned subnet,
		       const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	vb_subnets_put_routes(s, subnet, f);
	fclose(f);
	assert_string_equal(text, want);
	free(text);
}

static unsigned subnet_of(const struct vb_subnets *s, const char *name)
{
	return s->of[vb_topo_find(s->topo, name) - s->topo->nodes];
}

static void subnets__are_what_routers_separate(void **state)
{
	struct vb_subnets s;
	struct vb_topo t;

	assert_int_equal(read_text(&t, row), 0);
	assert_int_equal(vb_subnets_find(&t, &s, error), 0);
	assert_true(s.routed);
	assert_int_equal(s.count, 4);
	assert_int_equal(subnet_of(&s, "A"), 1);
	assert_int_equal(subnet_of(&s, "Ha"), 1);
	assert_int_equal(subnet_of(&s, "B"), 2);
	assert_int_equal(subnet_of(&s, "Hb"), 2);
	assert_int_equal(subnet_of(&s, "Hb2"), 2);
	/* an adapter with two ports does not join its two switches */
	assert_int_equal(subnet_of(&s, "B2"), 3);
	/* one adapter alone is a subnet, too */
	assert_int_equal(subnet_of(&s, "C"), 4);
	assert_int_equal(subnet_of(&s, "R"), 0);
	assert_string_equal(vb_subnets_manager(&s, 2)->id, "B");
	assert_string_equal(vb_subnets_manager(&s, 4)->id, "C");
	assert_null(vb_subnets_manager(&s, 5));
	routes_are(&s, 1, "0xfec0000000000002 0x701\n");
	routes_are(&s, 2,
		   "0xfec0000000000001 0x702\n0xfec0000000000004 0x801\n");
	routes_are(&s, 4, "0xfec0000000000002 0x802\n");
	vb_subnets_free(&s);
	vb_topo_free(&t);
}

static void routes__of_the_file_with_those_for_all_last(void **state)
{
	char text[1024];
	struct vb_subnets s;
	struct vb_topo t;

	snprintf(text, sizeof(text),
		 "%s#! node \"R\" route=any:2 route=0xfec0000000000009:2\n",
		 row);
	assert_int_equal(read_text(&t, text), 0);
	assert_int_equal(vb_subnets_find(&t, &s, error), 0);
	routes_are(&s, 1,
		   "0xfec0000000000002 0x701\n0xfec0000000000009 0x701\n"
		   "* 0x701\n");
	/* the router reaches these prefixes by its port in subnet 2, so subnet
	 * 2 has no routes to them */
	routes_are(&s, 2,
		   "0xfec0000000000001 0x702\n0xfec0000000000004 0x801\n");
	vb_subnets_free(&s);
	vb_topo_free(&t);
}

/* Without a router a topology is one subnet, even if it has separate pieces: it
 * may be the part of a subnet that runs in this process. */
static void subnets__without_a_router(void **state)
{
	struct vb_subnets s;
	struct vb_topo t;

	assert_int_equal(read_text(&t, "Switch 2 \"A\"\n\nSwitch 2 \"B\"\n"),
			 0);
	assert_int_equal(vb_subnets_find(&t, &s, error), 0);
	assert_false(s.routed);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.of[1], 1);
	routes_are(&s, 1, "");
	vb_subnets_free(&s);
	vb_topo_free(&t);
}

static void subnets__have_an_end(void **state)
{
	char *text = NULL;
	struct vb_subnets s;
	struct vb_topo t;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fprintf(f, "Rt 2 \"R\"\n\n");
	for (unsigned i = 0; i <= VB_SUBNETS_MOST; i++)
		fprintf(f, "Switch 1 \"S%u\"\n\n", i);
	fclose(f);
	assert_int_equal(read_text(&t, text), 0);
	free(text);
	assert_int_equal(vb_subnets_find(&t, &s, error), -EINVAL);
	assert_non_null(strstr(error, "more than 16 subnets"));
	vb_subnets_free(&s);
	vb_topo_free(&t);
}

#define ROUTE_IS                                                               \
	"route is 0xPREFIX:PORT with the 64 bits of a subnet prefix, "         \
	"any:PORT, or none; a router has 64 at most"

static void read__routes(void **state)
{
	static const char *const bad[] = {
		"route=",	 "route=0x1",
		"route=0x1:",	 "route=0x1:0",
		"route=0x1:255", "route=1:1",
		"route=any",	 "route=any:x",
		"route=0x1z:1",	 "route=0x1ffffffffffffffff:1",
	};
	const struct vb_topo_routes *r;
	char text[256], wanted[512];
	struct vb_topo t;

	assert_int_equal(read_text(&t, "Rt 3 \"R\"\n"
				       "#! node \"R\" route=any:1 "
				       "route=0xfec0000000000003:2 "
				       "route=0xfec0000000000003:3\n"),
			 0);
	r = t.nodes[0].spec.routes;
	assert_int_equal(r->count, 2);
	assert_true(r->route[0].any && r->route[0].port == 1);
	/* a second route for the prefix changes the port of the first one */
	assert_false(r->route[1].any);
	assert_int_equal(r->route[1].prefix, 0xfec0000000000003);
	assert_int_equal(r->route[1].port, 3);
	assert_int_equal(vb_topo_node_spec("route=none", FAB_ROUTER, true,
					   &t.nodes[0].spec, error),
			 0);
	assert_int_equal(r->count, 0);
	vb_topo_free(&t);
	says("Switch 1 \"A\"\n#! node \"A\" route=any:1\n",
	     "2: \"route=any:1\": only routers have route");
	says("Rt 2 \"A\"\n#! node \"A\" route=any:3\n",
	     "2: a route leads to port 3, and the router has 2");
	for (unsigned i = 0; i < VB_COUNT(bad); i++) {
		snprintf(text, sizeof(text), "Rt 2 \"A\"\n#! node \"A\" %s\n",
			 bad[i]);
		snprintf(wanted, sizeof(wanted), "2: \"%s\": " ROUTE_IS,
			 bad[i]);
		says(text, wanted);
	}
}

static void node_spec__routes_have_an_end(void **state)
{
	struct vb_topo_spec s = { 0 };
	char text[64];

	for (unsigned i = 0; i <= VB_FAB_PREFIXES; i++) {
		snprintf(text, sizeof(text), "route=%#x:1", i + 1);
		assert_int_equal(
			vb_topo_node_spec(text, FAB_ROUTER, true, &s, error),
			i < VB_FAB_PREFIXES ? 0 : -EINVAL);
	}
	vb_topo_spec_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(subnets__are_what_routers_separate),
		cmocka_unit_test(routes__of_the_file_with_those_for_all_last),
		cmocka_unit_test(subnets__without_a_router),
		cmocka_unit_test(subnets__have_an_end),
		cmocka_unit_test(read__routes),
		cmocka_unit_test(node_spec__routes_have_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, remove_file);
}

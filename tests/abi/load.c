/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads LIBIBVERBS, Verbena's, and then the libraries that use rdma-core's
 * private symbols, binding every symbol at once. A library that is not
 * installed is reported as absent. usage: load LIBIBVERBS [LIBRARY]...
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Symbols of libibverbs that programs such as NCCL look up by version. */
static const char *const wanted[][2] = {
	{ "ibv_get_device_list", "IBVERBS_1.1" },
	{ "ibv_get_device_list", "IBVERBS_1.0" },
	{ "ibv_reg_mr_iova2", "IBVERBS_1.8" },
	{ "ibv_reg_dmabuf_mr", "IBVERBS_1.12" },
	{ "ibv_query_ece", "IBVERBS_1.10" },
	{ "ibv_query_port_speed", "IBVERBS_1.16" },
	{ "verbs_register_driver_34", "IBVERBS_PRIVATE_34" },
	{ "ibv_cmd_create_qp", "IBVERBS_PRIVATE_65" },
	{ "verbs_allow_disassociate_destroy", "IBVERBS_PRIVATE_57" },
};

static int check_versions(void *lib)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (dlvsym(lib, wanted[i][0], wanted[i][1]))
			continue;
		fprintf(stderr, "no %s@%s\n", wanted[i][0], wanted[i][1]);
		bad = 1;
	}
	return bad;
}

static int load(const char *name)
{
	void *lib = dlopen(name, RTLD_NOW);
	const char *why = lib ? NULL : dlerror();

	if (lib) {
		printf("loads: %s\n", name);
		return 0;
	}
	if (strstr(why, "No such file")) {
		printf("absent: %s\n", name);
		return 0;
	}
	fprintf(stderr, "%s: %s\n", name, why);
	return 1;
}

static int load_providers(void)
{
	glob_t g;
	int bad = 0;

	if (glob("/usr/lib*/*/libibverbs/*.so", 0, NULL, &g) != 0 &&
	    glob("/usr/lib*/libibverbs/*.so", 0, NULL, &g) != 0)
		return 0;
	for (size_t i = 0; i < g.gl_pathc; i++)
		bad |= load(g.gl_pathv[i]);
	globfree(&g);
	return bad;
}

/* The loader must take the library under test for libibverbs.so.1. */
static int check_identity(void *lib)
{
	void *by_soname = dlopen("libibverbs.so.1", RTLD_NOW);

	if (by_soname == lib)
		return 0;
	fprintf(stderr, "libibverbs.so.1 is another library\n");
	return 1;
}

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int bad;

	if (!lib) {
		fprintf(stderr, "%s\n",
			argc > 1 ? dlerror()
				 : "usage: load LIBIBVERBS [LIBRARY]...");
		return EXIT_FAILURE;
	}
	bad = check_identity(lib) | check_versions(lib);
	for (int i = 2; i < argc; i++)
		bad |= load(argv[i]);
	bad |= load_providers();
	return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbena counters`: the counters of the user's programs in this network
 * namespace, by device. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "engine/counters.h"

static void print_row(const struct vb_counter_file *t)
{
	printf("%s\n", t->device);
	for (unsigned i = 0; i < CNT_COUNT; i++)
		printf("\t%-24s %" PRIu64 "\n", vb_counter_name(i),
		       t->counts[i]);
}

int vb_cli_counters(int argc, char **argv)
{
	const char *device;
	struct vb_counter_file *rows = NULL;
	unsigned count = 0, printed = 0;
	int rc;

	if (vb_cli_next_option("counters", argc, argv) != -1)
		return EXIT_USAGE;
	if (argc - optind > 1)
		return vb_cli_refuse("counters",
				     "\"%s\" is too much: one "
				     "device at most",
				     argv[optind + 1]);
	device = argv[optind];
	rc = vb_counter_file_read(&rows, &count);
	if (rc) {
		fprintf(stderr,
			"verbena counters: cannot read the counters: %s\n",
			strerror(-rc));
		return EXIT_FAILURE;
	}
	for (unsigned i = 0; i < count; i++) {
		if (device && strcmp(device, rows[i].device) != 0)
			continue;
		print_row(&rows[i]);
		printed++;
	}
	free(rows);
	if (printed == 0)
		printf("no program of yours has used %s in this network "
		       "namespace\n",
		       device ? device : "a device");
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A neighbour, a program of the same host, that is stopped, writes false
 * values, or sends very much: how far it can harm this program. Prints one line
 * for each case, as the tests' shell scripts do.
 *
 *	neighbour_test [options] [WORD]		cases with WORD in their name
 *
 * In the cases this program is A; B is its forked child, connected to it. Each
 * opens the device itself.
 */
#include "neighbour_test.h"

static const char *wanted;

static void try(const char *name, void (*what)(void))
{
	double then = seconds();

	if (wanted && !strstr(name, wanted))
		return;
	is_broken = is_skipped = false;
	remarks[0] = '\0';
	what();
	printf("%s neighbour: %s (%s%.1f s)\n",
	       is_broken    ? "not ok"
	       : is_skipped ? "skip"
			    : "ok",
	       name, remarks, seconds() - then);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	wanted = *rc_read_options(&options, argc, argv);
	port = options.port;
	alarm(300); /* a hanging case ends here */
	try("ibv_dereg_mr of what a stopped one writes to", region_of_stopped);
	try("ibv_dealloc_mw of the same", window_of_stopped);
	try("ibv_modify_qp to ERR of the same", error_of_stopped);
	try("ibv_destroy_qp of the same", qp_of_stopped);
	try("ibv_dereg_mr under a WRITE from late memory",
	    write_from_late_memory);
	try("ibv_dereg_mr under a READ into late memory",
	    read_into_late_memory);
	try("others beside a WRITE to late memory of a stopped one",
	    write_to_lent_memory);
	try("others beside a WRITE to late memory, and packets to its writer",
	    packets_beside_lent_memory);
	try("others beside a READ from late memory of a stopped one",
	    read_from_lent_memory);
	try("others beside a SEND from late memory of a stopped one",
	    send_from_lent_memory);
	try("a SEND whose memory is late before it is posted",
	    sender_waits_for_its_memory);
	try("receives that a stopped one has in hand", receives_of_stopped);
	try("others' turns while 256 MiB are written", turns_beside_much);
	try("others' turns while 256 MiB match a tag", turns_beside_tagged);
	try("stopped ourselves for longer than our retries", we_are_stopped);
	try("short retries on a full machine", retries_are_short);
	try("a neighbour that writes anything", memory_is_scribbled_on);
	try("memory that only its owner's processor reaches",
	    memory_of_a_device);
	return 0;
}

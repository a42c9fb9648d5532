/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What librdmacm's manual pages promise about addresses that are GIDs (AF_IB),
 * about options, and about events that have not come yet. Both ends are in one
 * process. Usage: cm_rules IPV4_ADDRESS IPV6_ADDRESS
 */
#include "cm_rules.h"

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3)
		return 2;
	channel = rdma_create_event_channel();
	if (!channel)
		return 1;
	say("another's queue pair is no reason to wait", strangers(argv[1]));
	gids(argv[1], argv[2]);
	say("REUSEADDR", reuse(argv[1]));
	say("AFONLY", afonly(argv[1]));
	say("ephemeral ports, as in Linux", ephemeral(argv[1]));
	say("IB_PATH, and no connection without a route", path(argv[1]));
	say("bound to one family, resolved in another", families(argv[1]));
	say("TOS and ACK_TIMEOUT", way(argv[1]));
	say("ECE, a queue pair of one's own, a shared receive queue",
	    own_qp(argv[1]));
	say("ids and their events move between channels", migrate(argv[1]));
	say("an id with an event that is not acknowledged", waits(argv[1]));
	say("an answer comes before rdma_connect() returns",
	    answered_early(argv[1]));
	say("a channel that does not block", does_not_block());
	say("rdma_resolve_addrinfo()", addrinfo_by_event(argv[1]));
	say("what no group is", join_corners(argv[1]));
	rdma_destroy_event_channel(channel);
	return failures != 0;
}

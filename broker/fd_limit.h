/* SPDX-License-Identifier: BSD-2-Clause */
/* The broker's limit of descriptors. */
#ifndef BROKER_FD_LIMIT_H
#define BROKER_FD_LIMIT_H

/* Raises RLIMIT_NOFILE of this process as far as the system allows. Returns how
 * many descriptors it may open besides @others, but at least @fewest. */
unsigned vb_fd_limit_raise(unsigned others, unsigned fewest);

#endif
